#!/bin/sh
# Trains the entity model and writes testdata/models/entities/, with the exact versions of
# testdata/make/goldens/requirements.txt, spacy.txt and pipeline.txt. Needs the built package (web/lib/dist) for the
# int8 files.
set -eu
. "$(dirname "$0")/../goldens/python.sh"
if [ ! -f build/entities/labelled.json ]; then
  labels=build/entities-venv/bin/python
  [ -x "$labels" ] || python3 -m venv build/entities-venv
  "$labels" -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --require-hashes --requirement testdata/make/entities/spacy.txt
  "$labels" -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --require-hashes --requirement testdata/make/entities/pipeline.txt
  "$labels" testdata/make/entities/label.py
fi
"$python" testdata/make/entities/train.py
rm -rf testdata/models/entities
node web/lib/dist/cli.js convert build/entities/float32 testdata/models/entities --weights int8
"$python" testdata/make/entities/measure.py
