#!/bin/sh
# Runs answers.py with transformers 4, which still has the question-answering pipeline, and the wheels of
# requirements.txt.
set -eu
. "$(dirname "$0")/python.sh"
older=build/goldens-transformers4
"$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --no-deps --upgrade --target "$older" --requirement testdata/make/goldens/answers.txt
PYTHONPATH=$older "$python" testdata/make/goldens/answers.py
