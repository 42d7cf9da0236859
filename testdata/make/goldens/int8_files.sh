#!/bin/sh
set -eu
. "$(dirname "$0")/python.sh"
"$python" testdata/make/goldens/int8_files.py "$@"
