#!/bin/sh
set -eu
. "$(dirname "$0")/../goldens/python.sh"
"$python" testdata/make/sentiment/fine_tune.py "$@"
