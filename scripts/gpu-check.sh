#!/usr/bin/env bash
# Checks and measures this crate on a machine with a GPU: what the adapter is, the GPU tests, then a
# table of times, each as a share of what the card does at most. Under 8 minutes, without network.
#
#     scripts/gpu-check.sh [--out FOLDER] [--small]
#     scripts/gpu-check.sh --pack FOLDER
#
# --pack, on a machine with Rust, puts all that is needed into a folder; this script in that folder
# needs neither Rust nor a checkout on the other machine, only a GPU driver and as new a C library.
# --small takes a software adapter too: some tests, small sizes. GPU_CHECK_PROFILE: cargo's profile,
# release if not set. PYTHON: an interpreter that has PyTorch. WGPU_ADAPTER_NAME, WGPU_BACKEND: which adapter.
#
# FOLDER (gpu-check) gets gpu-check.md, gpu-check.json and tests.log. Exit code: 0 if all is well, 1 if
# a test failed or did not end, or an answer was wrong, 2 if it could not be measured.
set -euo pipefail

say() { printf 'gpu-check: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 2
}

out=gpu-check small='' pack='' bad=0
while [ $# -gt 0 ]; do
    case "$1" in
        --out | --pack)
            [ -n "${2:-}" ] || fail "$1 needs a folder"
            if [ "$1" = --out ]; then out=$2; else pack=$2; fi
            shift
            ;;
        --small) small=--small ;;
        -h | --help)
            sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
            exit 0
            ;;
        *) fail "$1: what is that? --help tells" ;;
    esac
    shift
done

# The whole run, the tests and the table, in seconds. A second's work may be under way at each end.
all=470
most_tests=180
most_table=400
if [ -n "$small" ]; then
    most_tests=70
    most_table=45
fi

here=$(cd "$(dirname "$0")" && pwd)

# The path of a program that cargo builds: built KIND NAME, as in cargo build --example NAME.
built() {
    local command=build
    [ "$1" = test ] && command='test --no-run'
    # shellcheck disable=SC2086 # two words
    cargo $command --locked --profile "${GPU_CHECK_PROFILE:-release}" "--$1" "$2" \
        --message-format=json |
        sed -n "/\"name\":\"$2\"/s/.*\"executable\":\"\([^\"]*\)\".*/\1/p" | tail -n 1
}

if [ -x "$here/gpu_check" ]; then
    root=$here check=$here/gpu_check tests=$here/gpu_tests torch=$here/gpu_check_torch.py
    commit=$(cat "$here/commit" 2>/dev/null || echo unknown)
else
    root=$(dirname "$here")
    [ -f "$root/Cargo.toml" ] || fail "no program gpu_check in $here: was it packed whole?"
    command -v cargo >/dev/null 2>&1 || fail 'no cargo: pack on a machine that has it, with --pack'
    torch=$here/gpu_check_torch.py
    commit=$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    check=$(cd "$root" && built example gpu_check)
    tests=$(cd "$root" && built test gpu)
    # Building is no part of the run.
    SECONDS=0
fi
for file in "$check" "$tests"; do
    [ -x "$file" ] || fail "${file:-a program} is missing: was it built, or packed whole?"
done

if [ -n "$pack" ]; then
    mkdir -p "$pack/tests/data"
    cp "$check" "$pack/gpu_check"
    cp "$tests" "$pack/gpu_tests"
    cp -R "$root/tests/data/cases" "$pack/tests/data/"
    cp "$torch" "$0" "$pack/"
    printf '%s\n' "$commit" >"$pack/commit"
    say "packed: on the other machine run $pack/gpu-check.sh"
    exit 0
fi

# Mesa complains on stderr when this is missing.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}"

mkdir -p "$out" 2>/dev/null || fail "$out: cannot be made"
out=$(cd "$out" && pwd)
log=$out/tests.log
: 2>/dev/null >"$log" || fail "$out: cannot be written"

# Ends a command that takes longer than so many seconds, with 124.
limited() {
    local most=$(($1 + SECONDS)) pid
    shift
    "$@" &
    pid=$!
    # Nothing goes on when this script is interrupted.
    trap 'kill -KILL "$pid" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        if [ "$SECONDS" -ge "$most" ]; then
            kill -KILL "$pid" 2>/dev/null || true
            wait "$pid" 2>/dev/null || true
            return 124
        fi
        sleep 0.2
    done
    wait "$pid"
}

printf '== the adapter\n'
# shellcheck disable=SC2086 # one word or none
facts=$("$check" --facts $small) || exit 2
printf '%s\n' "$facts"

printf '\n== the tests (%s s at most; %s)\n' "$most_tests" "$log"
only=''
[ -z "$small" ] || only='golden lesson'
# They find their data from here.
# shellcheck disable=SC2086,SC2317 # names of tests; called below
suite() { cd "$root" && exec "$tests" "$@" >>"$log" 2>&1; }
code=0
# shellcheck disable=SC2086 # names
limited "$most_tests" suite $only || code=$?
# Those of matrix units are asked for.
if [ "$code" -eq 0 ] && ! printf '%s\n' "$facts" | grep -q '^cooperative matrices: none$'; then
    limited "$most_tests" suite --ignored matrix:: || code=$?
fi
passed=$(grep -c ' \.\.\. ok$' "$log" || true)
failed=$(grep -c ' \.\.\. FAILED$' "$log" || true)
verdict="$passed passed, $failed failed, of $(sed -n 's/^running \([0-9]*\) tests*$/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')"
case $code in
    0) ;;
    101) bad=1 ;;
    124) bad=1 verdict="$verdict; not done after $most_tests s, and cut" ;;
    *) bad=1 verdict="$verdict; ended with code $code" ;;
esac
[ "$failed" -eq 0 ] || bad=1
[ -z "$only" ] || verdict="$verdict (only $only)"
printf '%s\n' "$verdict"

left=$((all - SECONDS))
seconds=$((left - 30 < most_table ? left - 30 : most_table))
printf '\n== the table (%s s at most)\n' "$seconds"
code=0
# shellcheck disable=SC2086 # one word or none
limited "$((seconds + 30))" "$check" $small --out "$out" --seconds "$seconds" --torch "$torch" \
    --note "commit=$commit" --note "tests=$verdict" || code=$?
case $code in
    0) ;;
    1) bad=1 ;;
    2) fail 'no table' ;;
    124) bad=1 && say "the table was cut after $((seconds + 30)) s: what it has is in $out" ;;
    *) bad=1 && say "the table ended with code $code: what it has is in $out" ;;
esac
printf '\n%s s; the report: %s/gpu-check.md\n' "$SECONDS" "$out"
exit "$bad"
