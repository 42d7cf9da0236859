# Sourced by the scripts that run Python here: $python is one with the exact wheels of requirements.txt, in a virtual environment under build/, and
# the folder is the repository's.
cd "$(dirname "$0")/../../.."
python=build/goldens-venv/bin/python
export PYTHONDONTWRITEBYTECODE=1
[ -x "$python" ] || python3 -m venv build/goldens-venv
testdata/make/goldens/install.sh "$python" testdata/make/goldens/requirements.txt
