"""Measures the stored mask model on held-out real sentences and on the two files of sentences, and writes its README.md.

A line of test.txt or after.txt is a sentence with [MASK] and every single word that makes it normal English, as far as a reader found them. A sentence counts
if one of these words is among the first guesses. The sentences of after.txt were written when the training was over.
"""

import json
import random
import re
import string
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "testdata" / "make" / "corpora"))
from everyday import Everyday  # noqa: E402
from heads import described, heads  # noqa: E402
from stored import stored  # noqa: E402
from train import BATCH, STEPS, tests  # noqa: E402
from training import pad  # noqa: E402

FOLDER = ROOT / "testdata" / "models" / "masks"
SHOWN = (
    "The capital of France is [MASK].",
    "She drank a cup of [MASK].",
    "He opened the door with a [MASK].",
    "I was so [MASK] that I fell asleep.",
    "The film was [MASK].",
    "The boy kicked the [MASK].",
    "I went to the [MASK] to buy some bread.",
    "My mother and my [MASK] came home.",
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


@torch.no_grad()
def guesses(tokenizer, model, text, count):
    """The likeliest pieces at the mask with their probabilities."""
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    best = model(ids).logits[0, int((ids[0] == tokenizer.mask_token_id).nonzero()[0, 0])].softmax(0).topk(count)
    return [(tokenizer.convert_ids_to_tokens(int(each)), round(float(p), 2)) for p, each in zip(best.values, best.indices)]


def impersonal(text):
    """The words and marks of a sentence; persons are one word."""
    persons = "he she i we they you his her my our their your him them me us".split()
    return " ".join("person" if each in persons else each for each in re.findall(r"\[mask\]|[a-z']+|[.,?]", text.lower()))


def of_no_frame(texts):
    """The texts that none of 500 000 sentences of the frames equals, whatever person and whatever one to three words at the mask."""
    everyday = Everyday(random.Random(9), 0.03)
    made = "\n".join({impersonal(everyday.one()) for _ in range(500_000)})
    pattern = lambda text: re.escape(impersonal(text)).replace(re.escape("[mask]"), r"[\w']+(?: [\w']+){0,2}")  # noqa: E731
    return {text for text in texts if not re.search(f"^{pattern(text)}$", made, re.MULTILINE)}


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
    judged = {}
    for name in ("test.txt", "after.txt"):
        judged[name] = []
        for text, words in tests(name):
            judged[name].append(ranks(tokenizer, model, text, words))
            print("right" if judged[name][-1] < 3 else "wrong", text, guesses(tokenizer, model, text, 3))
    apart = of_no_frame([text for text, _ in tests("test.txt")])
    judged["apart"] = [rank for rank, (text, _) in zip(judged["test.txt"], tests("test.txt")) if text in apart]
    looks = list(heads(tokenizer, model, [text for text, _ in tests("test.txt")]))
    rows = (("top", found), ("hand", judged["test.txt"]), ("apart", judged["apart"]), ("after", judged["after.txt"]))
    figures = {f"{name}{count}": share(each, count) for name, each in rows for count in (1, 3, 5)}
    print({name: round(value, 1) for name, value in figures.items()})
    for text in SHOWN:
        print(text, guesses(tokenizer, model, text, 5))
    card = string.Template((Path(__file__).parent / "card.md").read_text("utf-8")).substitute(
        {name: f"{value:.0f}" for name, value in figures.items()},
        held_out=f"{len(found):,}".replace(",", " "),
        hand=len(judged["test.txt"]),
        apart=len(apart),
        after=len(judged["after.txt"]),
        patterns=sum(kind is not None for _, kind, _, _ in looks),
        heads="\n".join(f"- {described(at, kind, means)}" for at, kind, means, _ in looks),
        parameters=f"{sum(p.numel() for p in model.parameters()):,}".replace(",", " "),
        pieces=len(tokenizer),
        steps=STEPS,
        batch=BATCH,
    )
    (FOLDER / "README.md").write_text(card, "utf-8")
    print(f"{sum(path.stat().st_size for path in FOLDER.iterdir())} bytes in {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
