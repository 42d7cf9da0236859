#!/bin/sh
# Trains the sentiment classifier with the exact versions of testdata/make/goldens/requirements.txt and writes
# testdata/models/sentiment/ and testdata/sentiment/. The same machine gives the same bytes; --check fails if they
# change.
set -eu
. "$(dirname "$0")/../goldens/python.sh"
if [ "${1:-}" = --check ]; then
  before=$(sha256sum -- testdata/models/sentiment/* testdata/sentiment/*)
  "$python" testdata/make/sentiment/train.py
  printf '%s\n' "$before" | sha256sum --check --quiet
else
  "$python" testdata/make/sentiment/train.py "$@"
fi
