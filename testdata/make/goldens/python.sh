# Sourced by other scripts: sets $python, with the exact wheels of requirements.txt in a virtual environment under
# build/, and changes to the repository's folder.
cd "$(dirname "$0")/../../.."
python=build/goldens-venv/bin/python
export PYTHONDONTWRITEBYTECODE=1
[ -x "$python" ] || python3 -m venv build/goldens-venv
testdata/make/goldens/install.sh "$python" testdata/make/goldens/requirements.txt
