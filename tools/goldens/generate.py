"""Writes everything in testdata/. Usage: python tools/goldens/generate.py"""

import attention
import common
import folders
import functional
import minilm
import minilm_model
import models
import multi_head_attention
import onnx_cases
import page
import reference_cases
import safetensors_files
import tokenizer_cases
import transformer
import word_piece
import words

if __name__ == "__main__":
    common.TESTDATA.mkdir(exist_ok=True)
    for module in (
        attention,
        multi_head_attention,
        reference_cases,
        functional,
        transformer,
        word_piece,
        words,
        minilm,
        models,
        folders,
        minilm_model,
        page,
        onnx_cases,
        safetensors_files,
        tokenizer_cases,
    ):
        module.generate()
