"""Describes what each head of the stored mask model looks at in the sentences of test.txt, one line a head, and counts the heads with a pattern.

The kinds and their limits are those of the page (web/page/src/model/head_kind.ts). One more counts: heads in which the blank looks at words with
a meaning of their own, not at function words, marks and special tokens.

Usage: python testdata/make/masks/heads.py
"""

import string
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "testdata" / "make" / "corpora"))
from stored import stored  # noqa: E402

FOLDER = ROOT / "testdata" / "models" / "masks"
FUNCTION_WORDS = """
a an the this that these those my your his her its our their i you he she it we they me him us them who which what
of in on at to for with by from up out off over into about as than then and or but so because if when while not no n
is are was were be been being am has have had do does did will would can could may might must should shall t s
very too there here some any all more most one only also just like
""".split()
LEAST_SHARE, LEAST_SPREAD, LEAST_CONTENT = 0.35, 0.75, 0.65
SENTENCES = {
    "previous": "looks at the word before",
    "next": "looks at the word after",
    "self": "looks at the word itself",
    "separator": "rests: it looks at the marks around the sentence",
    "alike": "looks at all words alike",
    "content": "looks from the blank at the words that carry the meaning",
}


def has_meaning(pieces):
    """For each piece whether it is a word, or a part of one, with a meaning of its own."""
    return torch.tensor(
        [not (each in FUNCTION_WORDS or each.startswith("[") and len(each) > 1 or all(c in string.punctuation for c in each)) for each in pieces]
    )


def shares(weights, blank, meaning):
    """Shares of one head's weights (L,L) in a sentence; meaning (L), blank the index of the mask."""
    rows = torch.arange(1, len(weights) - 1)
    return {
        "previous": weights[rows[1:], rows[1:] - 1].mean(),
        "next": weights[rows[:-1], rows[:-1] + 1].mean(),
        "self": weights[rows, rows].mean(),
        "separator": weights[rows][:, [0, -1]].sum(1).mean(),
        "alike": torch.special.entr(weights).sum(1).mean().exp() / len(weights),
        "content": weights[blank][meaning].sum(),
    }


def kind(means):
    """The pattern, or None if the head has none of these."""
    best = max(("previous", "next", "self", "separator"), key=means.get)
    if means[best] >= LEAST_SHARE:
        return best
    if means["alike"] >= LEAST_SPREAD:
        return "alike"
    return "content" if means["content"] >= LEAST_CONTENT else None


@torch.no_grad()
def heads(tokenizer, model, texts):
    """[layer][head]: (kind or None, mean shares over the texts, the words that the blank looks at most)"""
    found = {}
    for text in texts:
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)["input_ids"]
        blank = int((ids[0] == tokenizer.mask_token_id).nonzero()[0, 0])
        pieces = tokenizer.convert_ids_to_tokens(ids[0].tolist())
        meaning = has_meaning(pieces)
        for layer, weights in enumerate(model(ids, output_attentions=True).attentions):
            for head, each in enumerate(weights[0]):
                found.setdefault((layer, head), []).append((shares(each, blank, meaning), pieces[int(each[blank].argmax())]))
    for at, rows in found.items():
        means = {name: float(torch.stack([share[name] for share, _ in rows]).mean()) for name in SENTENCES}
        yield at, kind(means), means, [word for _, word in rows]


def described(at, found, means):
    sentence = f"{SENTENCES[found]}: {100 * means[found]:.0f} %" if found else "has no pattern of these"
    return f"head {at[0] + 1}.{at[1] + 1} {sentence}"


def main():
    torch.set_num_threads(1)
    tokenizer, model = stored(FOLDER, "AutoModelForMaskedLM")
    texts = [line.partition(" | ")[0] for line in (Path(__file__).parent / "test.txt").read_text("utf-8").splitlines()]
    count = 0
    for at, found, means, words in heads(tokenizer, model, texts):
        count += found is not None
        print(f"{described(at, found, means)}; in “{texts[0]}” at “{words[0]}”")
    print(f"{count} of 12 heads have a pattern")


if __name__ == "__main__":
    main()
