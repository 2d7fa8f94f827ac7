#!/usr/bin/env bash
# The page in a real browser, against real swarms of the built bin/hecate, and
# whether the committed page is what web/ builds. Without Node, npm, Chromium or a
# way to the packages it says so and succeeds; with HECATE_WEB=required that is a
# failure. With HECATE_SHOTS=1 it takes the pictures in docs/ anew.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)

skip() {
  printf 'SKIPPED: the tests of the page: %s\n' "$1" >&2
  [ "${HECATE_WEB:-}" = required ] && exit 1
  exit 0
}

command -v node >/dev/null 2>&1 || skip 'there is no node (Node.js 20 or newer; for instance: sudo apt-get install -y nodejs npm)'
command -v npm >/dev/null 2>&1 || skip 'there is no npm (for instance: sudo apt-get install -y npm)'
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] || skip "Node.js $(node --version) is older than 20"

# packages installs what a folder's lock file names, once, outside git.
packages() {
  local from=$1 key
  key=$(cat "$from/package.json" "$from/package-lock.json" | cksum | cut -d ' ' -f 1)
  local to=$root/.cache/web/$key
  if [ ! -d "$to/node_modules" ]; then
    local work
    work=$(mktemp -d "${TMPDIR:-/tmp}/hecate-web.XXXXXX")
    cp "$from/package.json" "$from/package-lock.json" "$work/"
    (cd "$work" && timeout 240 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) || { rm -rf "$work"; return 1; }
    mkdir -p "$root/.cache/web"
    mv "$work" "$to" 2>/dev/null || rm -rf "$work" # another run may have been quicker
  fi
  printf '%s\n' "$to/node_modules"
}

builder=$(packages "$root/web") || skip 'npm could not install the builder (see above)'
work=$(mktemp -d "${TMPDIR:-/tmp}/hecate-web.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/web"
cp -R "$root/web/src" "$root/web/index.html" "$root/web/vite.config.js" "$root/web/tsconfig.json" "$root/web/package.json" "$work/web/"
ln -s "$builder" "$work/web/node_modules"
(cd "$work/web" && node node_modules/typescript/bin/tsc --noEmit && OUT_DIR="$work/dist" node node_modules/vite/bin/vite.js build --logLevel warn)
cmp "$work/dist/index.html" "$root/internal/web/dist/index.html" || {
  printf 'internal/web/dist is not what web/ builds: make web\n' >&2
  exit 1
}
printf 'internal/web/dist is what web/ builds\n'

browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$browser" ] || skip 'there is no Chromium (for instance: sudo apt-get install -y chromium)'
binary=${BINARY:-$root/bin/hecate}
[ -x "$binary" ] || { printf 'bin/hecate is missing: make build\n' >&2; exit 1; }
kit=$(packages "$root/web/test") || skip 'npm could not install the test kit (see above)'
mkdir "$work/test"
cp ./*.mjs "$work/test/"
ln -s "$kit" "$work/test/node_modules"
ROOT=$root BINARY=$binary CHROMIUM=$browser node --test --test-concurrency=1 --test-reporter=spec "$work/test/page.test.mjs"
