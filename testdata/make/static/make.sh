#!/bin/sh
# Writes testdata/models/static: three small static models and the vectors that model2vec and WordLlama compute with them.
# PYTHON is one with model2vec 0.10.0, wordllama 0.4.0.post1, tokenizers 0.23.3, safetensors 0.8.0 and numpy 2.4.6.
# --check fails if a byte differs.
set -eu
cd "$(dirname "$0")/../../.."
python=${PYTHON:?a Python that has model2vec and wordllama}
if [ "${1:-}" = --check ]; then
  "$python" testdata/make/static/models.py build/static-goldens
  diff -r build/static-goldens testdata/models/static
else
  "$python" testdata/make/static/models.py testdata/models/static
fi
