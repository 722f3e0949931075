#!/usr/bin/env bash
# The README's tests, and how many seconds each file of them took: those of one file added up, though
# tests run beside each other.
#
#     scripts/with-adapter.sh scripts/test-times.sh [FILTER ..]
#     scripts/with-adapter.sh scripts/test-times.sh --ignored exhaustive
set -euo pipefail
cd "$(dirname "$0")/.."

binaries=$(cargo test --no-run --message-format=json |
    sed -n '/"profile":{[^}]*"test":true/s/.*"target":{[^}]*"name":"\([^"]*\)".*"executable":"\([^"]*\)".*/\1 \2/p')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0
while read -r name binary; do
    begun=$SECONDS
    # Only so does the test harness of a stable Rust tell each test's time.
    RUSTC_BOOTSTRAP=1 "$binary" -Z unstable-options --report-time "$@" >"$log" 2>&1 || bad=1
    grep -E '^(test .* FAILED|test result)' "$log" || cat "$log"
    sed -n 's/^test \([^ ]*\) .*<\([0-9.]*\)s>$/\1 \2/p' "$log" |
        awk -v name="$name" '{
            file = name
            n = split($1, parts, "::")
            if (n > 1) file = file "/" parts[1]
            seconds[file] += $2
            tests[file]++
        }
        END { for (file in seconds) printf "%8.1f s %4d  %s\n", seconds[file], tests[file], file }' |
        sort -rn
    printf '%8d s in all  %s\n\n' "$((SECONDS - begun))" "$name"
done <<<"$binaries"
exit "$bad"
