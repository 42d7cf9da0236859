"""int8_files.py FOLDER ...: loads folders that attn wrote as int8 with safetensors and with transformers and compressed-tensors, and compares the
results with expected.safetensors, those of attn for the same ids.

Both quantize the inputs of linear layers to the nearest of 255 steps. If a number is halfway between two steps, the last bit of a float decides, and
later layers depend on it. Therefore the first layer must agree except for such tokens, and the last with a mean cosine of 0.999."""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file

transformers.logging.set_verbosity_error()
MEAN = 0.999
SAME_TOKENS = 0.9
HEADS = ("ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering", "ForSequenceClassification")


def cosines(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(a.double(), b.double(), dim=-1)


def check_file(folder: Path) -> int:
    """Every int8 weight has scales by row, and the data is aligned as the reader of safetensors requires."""
    tensors = load_file(folder / "model.safetensors")
    quantized = [name for name, tensor in tensors.items() if tensor.dtype == torch.int8]
    for name in quantized:
        assert tensors[name + "_scale"].shape == (tensors[name].shape[0], 1), name
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
    return len(quantized)


def outputs(folder: Path, names: set[str], ids: torch.Tensor, mask: torch.Tensor) -> tuple[dict[str, torch.Tensor], set[str]]:
    architectures = json.loads((folder / "config.json").read_text()).get("architectures") or [""]
    known = {name: getattr(transformers, f"AutoModel{name}") for name in HEADS}
    head = next((kind for name, kind in known.items() if architectures[0].endswith(name)), transformers.AutoModelForSequenceClassification)
    kind = head if "logits" in names else transformers.AutoModel
    model, report = kind.from_pretrained(folder, output_loading_info=True)
    model = model.eval()
    with torch.no_grad():
        got = model(ids, attention_mask=mask, output_hidden_states=True)
    hidden = got.hidden_states[-1] if "logits" in names else got.last_hidden_state
    weights = mask[:, :, None].float()
    results = {"embedding": (hidden * weights).sum(1) / weights.sum(1), "first_layer": got.hidden_states[1]}
    if "logits" in names:
        is_answer = "start_logits" in got
        logits = torch.stack((got.start_logits, got.end_logits), -1) if is_answer else got.logits
        results["logits"] = torch.where(mask[:, :, None].bool(), logits, 0) if logits.ndim == 3 else logits
    return results, set(report["missing_keys"]) | set(report["unexpected_keys"])


def main() -> int:
    failed = 0
    for folder in map(Path, sys.argv[1:]):
        expected = load_file(folder / "expected.safetensors")
        ids, mask = expected.pop("input_ids").long(), expected.pop("attention_mask").long()
        count = check_file(folder)
        got, odd = outputs(folder, set(expected), ids, mask)
        # A head's bias is shared with its decoder, which it is read from.
        odd = {name for name in odd if "pooler" not in name and not name.endswith(("lm_head.bias", "predictions.bias"))}
        difference = (got.pop("first_layer") - expected.pop("first_layer")).abs().amax(-1)[mask.bool()]
        same = (difference <= 1e-4).double().mean()
        line = [f"{same:.2%} of tokens the same after a layer"]
        failed += bool(same < SAME_TOKENS)
        for name, values in expected.items():
            cosine = cosines(got[name], values)
            if cosine.ndim == 2:
                cosine = cosine[mask.bool()]
            line.append(f"{name} cosine mean {cosine.mean():.6f}, least {cosine.min():.6f}")
            failed += bool(cosine.mean() < MEAN)
        failed += bool(odd)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.name != "expected.safetensors")
        print(f"{folder.name}: {count} int8 tensors, {size / 1e6:.2f} MB, {len(ids)} texts: {'; '.join(line)}" + (f"; not matched: {sorted(odd)}" if odd else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
