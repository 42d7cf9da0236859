"""Writes everything in testdata/. Usage: python tools/goldens/generate.py"""

import attention
import common
import functional
import minilm
import multi_head_attention
import reference_cases
import safetensors_files
import transformer
import words

if __name__ == "__main__":
    common.TESTDATA.mkdir(exist_ok=True)
    for module in (
        attention,
        multi_head_attention,
        reference_cases,
        functional,
        transformer,
        words,
        minilm,
        safetensors_files,
    ):
        module.generate()
