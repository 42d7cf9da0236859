#!/bin/sh
# install.sh PYTHON REQUIREMENTS: installs what a list with digests names, and PyTorch; nothing else, and wheels only, which run no code to be built.
set -eu
python=$1
lists=$(dirname "$0")
install() {
  "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --no-deps --requirement "$1"
}
install "$2"
install "$lists/torch-cpu.txt" 2>/dev/null || install "$lists/torch.txt"
"$python" -m pip check
