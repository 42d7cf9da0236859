#!/bin/sh
# int8_files.sh FOLDER ...: int8_files.py with the exact wheels of requirements.txt.
set -eu
. "$(dirname "$0")/python.sh"
"$python" testdata/make/goldens/int8_files.py "$@"
