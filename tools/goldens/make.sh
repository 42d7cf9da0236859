#!/bin/sh
# Writes testdata/ anew, with the exact versions of requirements.txt in a virtual environment under build/.
# With --check it then fails if any byte differs from what was there before.
set -eu
cd "$(dirname "$0")/../.."
venv=build/goldens-venv
export PYTHONDONTWRITEBYTECODE=1
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --requirement tools/goldens/requirements.txt
if [ "${1:-}" = --check ]; then
  before=$(cd testdata && sha256sum -- *.safetensors *.json)
  "$venv/bin/python" tools/goldens/generate.py
  printf '%s\n' "$before" | (cd testdata && sha256sum --check --quiet)
else
  "$venv/bin/python" tools/goldens/generate.py
fi
