#!/bin/sh
# All tables in Markdown on stdout: prefill, causal prefill, decode.
#
#     peers/table.sh > tables.md
#     PYTHON=python3 peers/table.sh > tables.md    with PyTorch and onnxruntime, if it has them
#
# Ends with 1 if an answer was wrong, after the other tables.
set -eu
cd "$(dirname "$0")"

# First calls compile: what an earlier run left on disk would make them shorter.
MESA_SHADER_CACHE_DISABLE=true
export MESA_SHADER_CACHE_DISABLE

cargo build --release --locked >&2

wrong=0
peers() {
    printf '## %s\n\n' "$1"
    shift
    ../scripts/with-adapter.sh target/release/peers "$@" --markdown \
        ${PYTHON:+--python "$PYTHON"} || wrong=1
    printf '\n'
}
peers Prefill prefill --tokens 512,1024,2048
peers 'Prefill, causal' prefill --tokens 512,1024,2048 --causal
peers Decode decode --rows 1,4,16
exit $wrong
