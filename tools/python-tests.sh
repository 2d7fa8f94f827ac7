#!/usr/bin/env bash
# The unit tests of tools/demomodel. They need Python only; what needs PyTorch
# skips itself.
set -eu -o pipefail
cd "$(dirname "$0")/demomodel"
if ! command -v python3 >/dev/null 2>&1; then
  echo 'SKIPPED: python3 is not installed, the demo model'"'"'s tools were not tested'
  exit 0
fi
python3 -m unittest 2>&1 | tail -n 4
exit "${PIPESTATUS[0]}"
