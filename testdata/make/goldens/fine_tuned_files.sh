#!/bin/sh
# fine_tuned_files.sh FOLDER ...: fine_tuned_files.py with the exact wheels of requirements.txt.
set -eu
. "$(dirname "$0")/python.sh"
"$python" testdata/make/goldens/fine_tuned_files.py "$@"
