#!/bin/sh
# Converts RXNMapper's model to testdata/models/reactions/, with the exact versions of
# testdata/make/goldens/requirements.txt. Needs the built package (web/lib/dist) for the int8 files.
set -eu
. "$(dirname "$0")/../goldens/python.sh"
mkdir -p build/reactions
echo 'rxnmapper==0.4.3 --hash=sha256:27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5' > build/reactions/wheel.txt
"$python" -m pip download --quiet --disable-pip-version-check --only-binary=:all: --no-deps --require-hashes --dest build/reactions --requirement build/reactions/wheel.txt
"$python" testdata/make/reactions/make.py build/reactions/rxnmapper-0.4.3-py3-none-any.whl build/reactions/float32
rm -rf testdata/models/reactions
node web/lib/dist/cli.js convert build/reactions/float32 testdata/models/reactions --weights int8
"$python" testdata/make/reactions/measure.py build/reactions/float32
