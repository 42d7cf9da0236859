#!/bin/sh
# Trains the model of digits and writes testdata/vision/digits/ and testdata/vision/digits.json, with the exact versions of
# testdata/make/goldens/requirements.txt.
set -eu
. "$(dirname "$0")/../goldens/python.sh"
"$python" testdata/make/digits/train.py
"$python" testdata/make/digits/measure.py
