#!/usr/bin/env bash
# Builds bin/hecate and bin/hecate-node. The first build compiles the kernels,
# which takes minutes: then it says so and shows that it is alive.
set -eu
go=${1:-go}
cd "$(dirname "$0")/.."
mkdir -p bin
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$go" build -o bin/ ./cmd/hecate ./cmd/hecate-node >"$log" 2>&1 &
pid=$!
began=$SECONDS
while kill -0 "$pid" 2>/dev/null; do
  sleep 1
  took=$((SECONDS - began))
  if [ $((took % 15)) = 8 ]; then
    printf 'building, %d s so far (the first build compiles the C++ kernels: 3 to 8 minutes on two cores)\n' "$took"
  fi
done
if ! wait "$pid"; then
  cat "$log" >&2
  exit 1
fi
grep -vE '^#|warning|note:|inlined from|^ *[0-9]* \||^ *\||In function' "$log" >&2 || true
printf 'built bin/hecate and bin/hecate-node in %d s\n' $((SECONDS - began))
