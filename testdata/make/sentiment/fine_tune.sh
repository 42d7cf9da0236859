#!/bin/sh
# fine_tune.sh start FOLDER | logistic FILE: fine_tune.py with the exact wheels of requirements.txt.
set -eu
. "$(dirname "$0")/../goldens/python.sh"
"$python" testdata/make/sentiment/fine_tune.py "$@"
