#!/bin/sh
# Regenerates testdata/ with the exact wheels of requirements.txt in a virtual environment under build/. --check fails
# if any byte changes.
set -eu
. "$(dirname "$0")/python.sh"
digests() { (cd testdata && find . -path ./make -prune -o -type f -exec sha256sum {} + | LC_ALL=C sort -k 2); }
before=$(digests)
"$python" testdata/make/goldens/generate.py
if [ "${1:-}" = --check ]; then
  after=$(digests)
  [ "$before" = "$after" ] || { printf '%s\n' "$before" "$after" | sort -k 2 | uniq -u; exit 1; }
fi
