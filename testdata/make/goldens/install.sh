#!/bin/sh
# install.sh PYTHON REQUIREMENTS: installs PyTorch and the packages of a list with digests, as wheels only, because building one would run its code.
set -eu
python=$1
lists=$(dirname "$0")
install() {
  "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --no-deps --requirement "$1"
}
install "$2"
install "$lists/torch-cpu.txt" 2>/dev/null || install "$lists/torch.txt"
"$python" -m pip check
