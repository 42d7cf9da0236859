"""fine_tuned_files.py FOLDER ...: loads folders that attn wrote after fine-tuning with AutoModelForSequenceClassification and compares the logits
with expected.safetensors, those of attn for the same ids. No tensor may be missing or unexpected, and the labels must be those in labels.json."""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def logits(folder: Path, dtype: torch.dtype, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, list[str], list[str]]:
    model, report = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    with torch.no_grad():
        got = model.eval()(ids, attention_mask=mask).logits
    odd = sorted({*report["missing_keys"], *report["unexpected_keys"], *map(str, report["mismatched_keys"])})
    return got, odd, [model.config.id2label[i] for i in range(model.config.num_labels)]


def main() -> int:
    failed = 0
    for folder in map(Path, sys.argv[1:]):
        expected = load_file(folder / "expected.safetensors")
        ids, mask = expected["input_ids"].long(), expected["attention_mask"].long()
        single, odd, labels = logits(folder, torch.float32, ids, mask)
        # The tolerance of the tests: four times torch's error, and 2e-6 of the largest.
        double = logits(folder, torch.float64, ids, mask)[0] if "modernbert" not in folder.name else single.double()
        error = (single - double).abs().max().item()
        allowed = 4 * error + 2e-6 * max(1, double.abs().max().item())
        difference = (double - expected["logits"]).abs().max().item()
        wrong = [*odd]
        if not difference <= allowed:
            wrong.append("other logits")
        if labels != json.loads((folder / "labels.json").read_text("utf-8")):
            wrong.append(f"labels {labels}")
        failed += bool(wrong)
        print(f"{folder.name}: logits {tuple(single.shape)}, difference {difference:.1e}, allowed {allowed:.1e}" + (f"; wrong: {', '.join(wrong)}" if wrong else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
