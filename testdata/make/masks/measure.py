"""Measures the stored mask model on held-out real sentences and on test.txt, and writes its README.md."""

import json
import random
import string
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "testdata" / "make" / "corpora"))
from stored import stored  # noqa: E402
from training import pad  # noqa: E402

FOLDER = ROOT / "testdata" / "models" / "masks"
SHOWN = (
    "The capital of France is [MASK].",
    "She drank a cup of [MASK].",
    "He opened the door with a [MASK].",
    "I was so [MASK] that I fell asleep.",
    "The film was [MASK].",
)


@torch.no_grad()
def ranks(tokenizer, model, text, words):
    """The best rank of one of these words at the mask; words that are not a token have none."""
    ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)["input_ids"]
    at = (ids[0] == tokenizer.mask_token_id).nonzero()
    if len(at) == 0:
        return None
    logits = model(ids).logits[0, at[0, 0]]
    wanted = [tokenizer.convert_tokens_to_ids(word) for word in words]
    wanted = [each for each in wanted if each != tokenizer.unk_token_id]
    return min((int((logits > logits[each]).sum()) for each in wanted), default=10**6)


def share(found, count):
    return 100 * sum(rank < count for rank in found) / len(found)


def main():
    tokenizer, model = stored(FOLDER, "AutoModelForMaskedLM")
    torch.set_num_threads(1)
    draw, mask = random.Random(1), tokenizer.mask_token_id
    rows = []
    for ids in tokenizer(json.loads((ROOT / "build/masks/held_out.json").read_text("utf-8")), truncation=True, max_length=64)["input_ids"]:
        at = draw.randrange(1, len(ids) - 1)
        rows.append(([*ids[:at], mask, *ids[at + 1 :]], at, ids[at]))
    rows.sort(key=lambda row: len(row[0]))
    found = []
    for start in range(0, len(rows), 64):
        part = rows[start : start + 64]
        input_ids, attention_mask = pad([ids for ids, _, _ in part])
        with torch.no_grad():
            hidden = model.bert(input_ids, attention_mask=attention_mask).last_hidden_state
            logits = model.cls(hidden[range(len(part)), [at for _, at, _ in part]])
        wanted = logits.gather(1, torch.tensor([[id] for _, _, id in part]))
        found += (logits > wanted).sum(1).tolist()
    by_hand = []
    for line in (Path(__file__).parent / "test.txt").read_text("utf-8").splitlines():
        text, _, words = line.partition(" | ")
        by_hand.append(ranks(tokenizer, model, text, words.split()))
    figures = {"top1": share(found, 1), "top5": share(found, 5), "hand1": share(by_hand, 1), "hand5": share(by_hand, 5)}
    print(len(found), len(by_hand), {name: round(value, 1) for name, value in figures.items()})
    for text in SHOWN:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            shares = model(ids).logits[0, int((ids[0] == mask).nonzero()[0, 0])].softmax(0)
        print(text, [(tokenizer.convert_ids_to_tokens(int(each)), round(float(shares[each]), 2)) for each in shares.topk(5).indices])
    card = string.Template((Path(__file__).parent / "card.md").read_text("utf-8")).substitute(
        {name: f"{value:.0f}" for name, value in figures.items()},
        held_out=f"{len(found):,}".replace(",", " "),
        hand=len(by_hand),
        parameters=f"{sum(p.numel() for p in model.parameters()):,}".replace(",", " "),
        pieces=len(tokenizer),
    )
    (FOLDER / "README.md").write_text(card, "utf-8")
    print(f"{sum(path.stat().st_size for path in FOLDER.iterdir())} bytes in {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
