#!/usr/bin/env bash
# Builds release archives into dist/, or $DIST: tools/release.sh [TARGET...]
#
#   linux-x86_64-v3   machines since about 2013 (AVX2); the fast kernels
#   linux-x86_64-v2   older ones; the kernels are many times slower
#   linux-arm64       needs the package g++-aarch64-linux-gnu; without it a
#                     gateway without engine is built: linux-arm64-gateway
#
# VERSION names the release; by default what git says. Programs are static: they
# need nothing of the machine they run on. The same commit, tools and VERSION
# give the same bytes.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
targets=${*:-linux-x86_64-v3 linux-x86_64-v2 linux-arm64}
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
version=${version#v}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export GOFLAGS="-buildvcs=false -trimpath" GOOS=linux TZ=UTC LC_ALL=C
dist=${DIST:-dist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '%s\n' "$*" >&2; }

# compile TARGET DIR puts both programs into DIR.
compile() {
  local set="-s -w -X hecate/internal/cli.release=$version" static='-linkmode external -extldflags "-static"' tags=netgo,osusergo
  export CGO_ENABLED=1 CC=gcc CXX=g++ GOARCH=amd64
  case $1 in
    linux-x86_64-v3) march='-march=x86-64-v3' ;;
    linux-x86_64-v2) march='-march=x86-64-v2' ;;
    linux-arm64) GOARCH=arm64 CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ march='-march=armv8.2-a+dotprod' ;;
    linux-arm64-gateway) GOARCH=arm64 CGO_ENABLED=0 march='' static='' tags=$tags,noengine ;;
    *) say "there is no target $1: known are linux-x86_64-v3, linux-x86_64-v2, linux-arm64, linux-arm64-gateway"; exit 2 ;;
  esac
  export CGO_CFLAGS="-O3 $march" CGO_CXXFLAGS="-O3 $march"
  for program in hecate hecate-node; do
    "$go" build -tags "$tags" -ldflags "$set $static" -o "$2/" "./cmd/$program" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
  done
}

# notices of everything that is inside the programs.
notices() {
  printf 'HECATE is under the Apache License 2.0 (LICENSE). Its programs contain the Go standard library, parts of the GNU C\n'
  printf 'library (LGPL 2.1 or later) and of GCC (GPL 3 with the runtime library exception), whose sources are at gnu.org, the\n'
  printf 'demo model (demo-model/), and these modules and pieces of the page:\n'
  "$go" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}} {{$.Dir}}{{end}}{{end}}' ./cmd/hecate |
    while read -r module release top dir; do # licences of a package's folder, and of those above it
      while :; do
        find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'notice*' -o -iname 'copying*' \) -printf "$module $release %p\n"
        [ "$dir" != "$top" ] || break
        dir=${dir%/*}
      done
    done | sort -u |
    while read -r module release file; do
      printf '\n======== %s %s\n\n' "$module" "$release"
      cat "$file"
    done
  for file in web/licenses/*; do
    printf '\n======== of the page: %s\n\n' "$(basename "$file")"
    cat "$file"
  done
}

# pack TARGET makes the archive of a target.
pack() {
  local name="hecate-$version-$1" dir
  dir="$work/$name"
  say "$name"
  mkdir -p "$dir/systemd" "$dir/demo-model"
  compile "$1" "$dir"
  cp -r README.md LICENSE docs examples "$dir/"
  cp packaging/systemd/*.service "$dir/systemd/"
  cp packaging/check.sh "$dir/"
  cp -r internal/demomodel/MODEL_CARD.md internal/demomodel/licenses "$dir/demo-model/"
  notices >"$dir/NOTICE"
  find "$dir" -type d -exec chmod 755 {} + -o -type f -perm /100 -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
  tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" |
    gzip -9n >"$dist/$name.tar.gz"
  rm -rf "$dir"
}

mkdir -p "$dist"
for target in $targets; do
  if [ "$target" = linux-arm64 ] && ! command -v aarch64-linux-gnu-g++ >/dev/null; then
    say "linux-arm64: no cross compiler (sudo apt-get install -y g++-aarch64-linux-gnu): a gateway without engine is built instead"
    target=linux-arm64-gateway
  fi
  pack "$target"
done
(cd "$dist" && sha256sum ./*.tar.gz | sed 's, \./, ,' >SHA256SUMS)
say "$dist/: $(cd "$dist" && ls ./*.tar.gz | wc -l) archive(s), SHA256SUMS"
