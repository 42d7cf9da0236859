#!/bin/sh
# Trains the mask model and writes testdata/models/masks/, with the exact versions of
# testdata/make/goldens/requirements.txt. Needs the built package (web/lib/dist) for the int8 files.
set -eu
. "$(dirname "$0")/../goldens/python.sh"
"$python" testdata/make/masks/train.py
rm -rf testdata/models/masks
node web/lib/dist/cli.js convert build/masks/float32 testdata/models/masks --weights int8
"$python" testdata/make/masks/measure.py
