#!/usr/bin/env bash
# Runs the test runner as it is told to. When it fails, its last lines say once
# more what failed: the logs of the failed tests, which come before, are long.
set -uo pipefail
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$@" 2>&1 | tee "$out"
code=${PIPESTATUS[0]}
if [ "$code" -ne 0 ]; then
	"$(dirname "$0")/say.sh" "what failed"
	grep -aE '^ *--- FAIL|^ +[a-z0-9_]+_test\.go:[0-9]+: |^FAIL|^panic:|DATA RACE|^[^ ]+\.go:[0-9]+:[0-9]+: ' "$out" | cut -c 1-300 | tail -n 60
fi
exit "$code"
