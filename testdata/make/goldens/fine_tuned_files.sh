#!/bin/sh
set -eu
. "$(dirname "$0")/python.sh"
"$python" testdata/make/goldens/fine_tuned_files.py "$@"
