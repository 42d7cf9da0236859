"""Writes everything in testdata/. Usage: python testdata/make/goldens/generate.py"""

import attention
import backward
import common
import decoders
import encoder_backward
import fine_tuning
import folders
import functional
import gguf_files
import gguf_sentencepiece
import layers_backward
import losses
import minilm
import minilm_model
import model_gradients
import model_keys
import models
import multi_head_attention
import onnx_cases
import optimizers
import other_tokens
import page
import reference_cases
import safetensors_files
import tasks
import tokenizer_cases
import tokenizer_decoders
import tokenizer_draws
import tokenizer_options
import tokenizer_words
import transformer
import vision
import word_piece
import words

if __name__ == "__main__":
    common.TESTDATA.mkdir(exist_ok=True)
    for module in (
        attention,
        multi_head_attention,
        reference_cases,
        functional,
        backward,
        layers_backward,
        encoder_backward,
        losses,
        optimizers,
        transformer,
        word_piece,
        words,
        minilm,
        models,
        decoders,
        tasks,
        model_gradients,
        fine_tuning,
        folders,
        minilm_model,
        page,
        onnx_cases,
        safetensors_files,
        gguf_files,
        gguf_sentencepiece,
        tokenizer_cases,
        tokenizer_decoders,
        tokenizer_draws,
        tokenizer_options,
        tokenizer_words,
        other_tokens,
        model_keys,
        vision,
    ):
        module.generate()
