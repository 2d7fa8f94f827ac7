#!/usr/bin/env bash
# One line that stands out in a long log.
printf '\n== %s (%s)\n' "$*" "$(date +%H:%M:%S)"
