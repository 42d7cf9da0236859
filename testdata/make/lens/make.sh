#!/bin/sh
# Writes testdata/lens/tiny-gpt2.safetensors: what TransformerLens computes of testdata/models/tiny-gpt2. With a .gguf
# file of a Llama model, compares attn with TransformerLens on it (needs web/lib/dist). PYTHON is one with
# transformer-lens 3.9.0, transformers 5.24.0, torch 2.13.0, safetensors 0.8.0 and gguf 0.19.0.
set -eu
cd "$(dirname "$0")/../../.."
python=${PYTHON:?a Python that has transformer-lens}
if [ $# -eq 0 ]; then
  "$python" testdata/make/lens/activations.py testdata/models/tiny-gpt2 testdata/lens/tiny-gpt2.safetensors
else
  "$python" testdata/make/lens/activations.py "$1" build/lens.safetensors
  node testdata/make/lens/compare.mjs "$1" build/lens.safetensors
fi
