#!/usr/bin/env bash
# Official JavaScript clients (openai, ai, @langchain/openai) against real swarms
# of the built bin/hecate. Without Node, npm or a way to the packages it says so
# and succeeds; with HECATE_CLIENTS=required that is a failure.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
binary=$root/bin/hecate

skip() {
  printf 'SKIPPED: the checks of the official JavaScript clients: %s\n' "$1" >&2
  [ "${HECATE_CLIENTS:-}" = required ] && exit 1
  exit 0
}

command -v node >/dev/null 2>&1 || skip 'there is no node (Node.js 20 or newer; for instance: sudo apt-get install -y nodejs npm)'
command -v npm >/dev/null 2>&1 || skip 'there is no npm (for instance: sudo apt-get install -y npm)'
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] || skip "Node.js $(node --version) is older than 20"
[ -x "$binary" ] || { printf 'bin/hecate is missing: make build\n' >&2; exit 1; }

# The packages lie outside git, once per lock file.
key=$(cat package.json package-lock.json | cksum | cut -d ' ' -f 1)
packages=$root/.cache/clients/$key/node_modules
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$packages" ]; then
  printf 'installing the clients from npm\n'
  cp package.json package-lock.json "$work/"
  (cd "$work" && timeout 120 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) || skip 'npm could not install them (see above)'
  mkdir -p "$(dirname "$packages")"
  mv "$work/node_modules" "$packages" 2>/dev/null || [ -d "$packages" ] # another run may have been quicker
fi

cp ./*.mjs "$work/"
# A model whose chat template knows tools; its weights are random.
(cd "$root" && CGO_ENABLED=0 "${GO:-go}" run ./internal/engine/randmodel/write "$work/caller.gguf")
ln -sfn "$packages" "$work/node_modules"
LANGSMITH_TRACING=false node "$work/main.mjs" "$binary"
