"""testdata/page_reference.safetensors: results of transformers with the sentiment classifier for a few texts, to which the page compares its own."""

import torch
import transformers

import common
import models

CHECKPOINT = models.FOLDER / "sentiment"
LONGEST = 64

# The first is the page's default text; the others are short, split into pieces, negated, empty, or in other scripts.
TEXTS = [
    "A film with wonderful actors and a terrible script.",
    "Not bad at all, and never dull.",
    "Was it good?",
    "Überraschend schön!",
    "UNBELIEVABLY tedious: supercalifragilistic nonsense, 1,299 minutes of it.",
    "",
    ("The old man sleeps.", "He is tired."),
]


def generate():
    golden = common.GoldenFile(checkpoint=CHECKPOINT.name, transformers=transformers.__version__)
    single, double = models.load(CHECKPOINT, torch.float32), models.load(CHECKPOINT, torch.float64)
    for i, text in enumerate(TEXTS):
        inputs, tokens = models.encode(CHECKPOINT, [text], LONGEST)
        name = f"text_{i}"
        case = {"name": name, "op": "text_model", "texts": [text], "tokens": tokens, "expected": {}}
        golden.cases.append(case)
        values32, values64 = models.run(single, inputs, {}), models.run(double, inputs, {})
        for key, value in values64.items():
            if key.startswith(("attentions", "hiddenStates", "lastHiddenState", "logits")):
                golden.expect(case, key, values32[key], value)
    golden.write(common.TESTDATA / "page_reference.safetensors", limit=150_000)


if __name__ == "__main__":
    generate()
