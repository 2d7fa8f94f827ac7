#!/bin/sh
# Tries the release that lies beside this script: a swarm of three nodes on this
# machine, one question, and the end. Takes seconds and leaves nothing behind.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ "$("$here/hecate" version | grep -c 'kernels: none')" = 1 ]; then
  echo "this archive is a gateway without engine; it starts: $("$here/hecate" version)"
  exit 0
fi
data=$(mktemp -d)
: >"$data/said"
swarm=
finish() {
  [ -z "$swarm" ] || { kill -INT "$swarm" 2>/dev/null && wait "$swarm" || true; }
  rm -rf "$data"
}
trap finish EXIT
trap 'exit 1' INT TERM
"$here/hecate" up --listen 127.0.0.1:0 --data "$data" >"$data/said" 2>&1 &
swarm=$!
tries=0
until grep -q '^ready ' "$data/said"; do
  kill -0 "$swarm" 2>/dev/null && [ "$tries" -lt 120 ] || { cat "$data/said"; echo "the swarm does not start"; exit 1; }
  tries=$((tries + 1))
  sleep 0.5
done
"$here/hecate" version
"$here/hecate" chat --data "$data" --temperature 0 "What is the capital of France?"
echo "it works"
