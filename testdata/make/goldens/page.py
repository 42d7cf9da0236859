"""testdata/page_reference.safetensors: results of transformers with the page's classifier and mask model for a few texts, to which the page compares its own.

The int8 weights of the mask model are dequantized, as attn does with `weights: 'float32'`.
"""

import copy
import sys

import torch
import transformers

import common
import models

sys.path.append(str(common.ROOT / "testdata" / "make" / "corpora"))
from stored import stored  # noqa: E402

LONGEST = 64

# The first of each model is the page's default text; the others are short, split into pieces, negated, empty, or in other scripts.
TEXTS = {
    "sentiment": [
        "A film with wonderful actors and a terrible script.",
        "Not bad at all, and never dull.",
        "Was it good?",
        "Überraschend schön!",
        "UNBELIEVABLY tedious: supercalifragilistic nonsense, 1,299 minutes of it.",
        "",
        ("The old man sleeps.", "He is tired."),
    ],
    "masks": ["She drank a cup of [MASK].", "My mother and my [MASK] came home."],
}


def both(folder):
    """The model in float32 and in float64."""
    if "quantization_config" in (folder / "config.json").read_text():
        _, single = stored(folder, "AutoModelForMaskedLM")
        return single, copy.deepcopy(single).double()
    return models.load(folder, torch.float32), models.load(folder, torch.float64)


@torch.no_grad()
def results(model, inputs, mask):
    """Of a mask model only the logits of the blank, (V)."""
    values = models.run(model, inputs, {})
    if mask is not None:
        values["logits"] = values["logits"][inputs["input_ids"] == mask][0]
    return {key: value for key, value in values.items() if key.startswith(("attentions", "hiddenStates", "lastHiddenState", "logits"))}


def generate():
    golden = common.GoldenFile(transformers=transformers.__version__)
    for checkpoint, texts in TEXTS.items():
        folder = models.FOLDER / checkpoint
        single, double = both(folder)
        mask = transformers.AutoTokenizer.from_pretrained(folder).mask_token_id if checkpoint == "masks" else None
        for i, text in enumerate(texts):
            inputs, tokens = models.encode(folder, [text], LONGEST)
            name = f"{checkpoint}_{i}"
            case = {"name": name, "op": "text_model", "checkpoint": checkpoint, "texts": [text], "tokens": tokens, "expected": {}}
            golden.cases.append(case)
            values32 = results(single, inputs, mask)
            for key, value in results(double, inputs, mask).items():
                golden.expect(case, key, values32[key], value)
    golden.write(common.TESTDATA / "page_reference.safetensors", limit=250_000)


if __name__ == "__main__":
    generate()
