"""Analyses of what a language model computes, as functions over a TextModel.

A text may also be given as token ids. A token may be given by its id, by its spelling in the vocabulary, or as a text that is a single token,
such as " Paris". Decoders of the types gpt2, llama, mistral, qwen2 and qwen3 are supported; other models raise UnsupportedError unless the
function's documentation names them.

>>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
>>> result = attn.lens.logit_lens(model, "The old man", top_k=1)
>>> result.layers, len(result.predictions[0])
([0, 1, 2], 6)
"""

from ._attn import attribution_patching, head_scores, logit_attribution, logit_lens, patch_activations
from ._hooks import run_with_hooks, trace

__all__ = [
    "attribution_patching",
    "head_scores",
    "logit_attribution",
    "logit_lens",
    "patch_activations",
    "run_with_hooks",
    "trace",
]
