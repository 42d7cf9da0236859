"""Reads a folder with int8 weights as a float32 model of transformers with the dequantized weights."""

import torch
import transformers
from safetensors.torch import load_file


def stored(folder, kind):
    """(tokenizer, model); kind is the name of a class in transformers."""
    config = transformers.AutoConfig.from_pretrained(folder)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    tensors = load_file(folder / "model.safetensors")
    state = {}
    for name, tensor in tensors.items():
        if name.endswith("_scale"):
            continue
        scale = tensors.get(name + "_scale")
        state[name] = tensor.float() if scale is None else tensor.float() * scale
    model = getattr(transformers, kind).from_config(config, attn_implementation="eager").to(torch.float32)
    missing, unexpected = model.load_state_dict(state, strict=False)
    model.tie_weights()
    assert not unexpected and all("position_ids" in each or "decoder" in each for each in missing), (missing, unexpected)
    return transformers.AutoTokenizer.from_pretrained(folder), model.eval()
