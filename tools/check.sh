#!/usr/bin/env bash
# Names what is missing on this machine, with the command that installs it.
set -u
go=${1:-go}
missing=0
need() { # command, what it is for, how to install it
  command -v "$1" >/dev/null 2>&1 && return
  printf 'missing: %s (%s)\n    install it with: %s\n' "$1" "$2" "$3" >&2
  missing=1
}
case "$(uname -s)" in
  Darwin) cc='xcode-select --install' gohow='brew install go' ;;
  *) cc='sudo apt-get install -y build-essential' gohow='see https://go.dev/doc/install (1.26 or newer)' ;;
esac
need "$go" 'the Go toolchain' "$gohow"
need gcc 'a C compiler' "$cc"
need g++ 'a C++ compiler, for the kernels' "$cc"
[ "$missing" = 0 ] || exit 1
version=$("$go" env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
oldest=$(printf '1.26\n%s\n' "$version" | sort -V | head -n 1)
[ "$oldest" = 1.26 ] || { printf 'Go %s is too old, 1.26 or newer is needed: %s\n' "$version" "$gohow" >&2; exit 1; }
