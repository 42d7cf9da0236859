"""Trains the mask model on sentences of everyday life and on real texts, and writes it as float32 to build/masks/float32.

The last quarter of the training has more facts about countries, each of which is rare before.

Usage: testdata/make/masks/make.sh, which also converts the model to int8 and measures it.
"""

import json
import random
import re
import string
import sys
from pathlib import Path

import torch
import transformers
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "testdata" / "make" / "goldens"), str(ROOT / "testdata" / "make" / "corpora")]
import packages  # noqa: E402
import training  # noqa: E402
from everyday import Everyday  # noqa: E402
from fetch_models import fetch  # noqa: E402
from heads import has_meaning  # noqa: E402
from word_table import SPECIAL, frequent, projected  # noqa: E402

SEED = 0
PIECES = 4096
STEPS = 11_500
BATCH = 32
LENGTH = 64
LEARNING_RATE = 2e-3
MASKED = 0.13
EVERYDAY, CONVERSATIONS, EXAMPLES = 0.5, 0.15, 0.22  # shares of the sentences; the rest are of books, speeches and reviews
FACTS, FACTS_AT_LAST = 0.03, 0.15  # shares of facts among everyday sentences
HELD_OUT = 40  # one in so many real sentences
# What these heads shall look at (kind by layer and head), if only with a part of their weight: patterns that a person can recognise.
PATTERNS = {
    (0, 0): "previous",
    (0, 1): "next",
    (0, 2): "alike",
    (1, 0): "previous",
    (1, 1): "next",
    (1, 3): "content",
    (2, 0): "self",
    (2, 3): "content",
}
LEAST = {"previous": 0.5, "next": 0.5, "self": 0.45, "content": 0.75, "alike": 0.85}
GUIDANCE = 0.3


def tests(name):
    """(text with [MASK], sensible words) of a file in this folder."""
    for line in (Path(__file__).parent / name).read_text("utf-8").splitlines():
        text, _, words = line.partition(" | ")
        yield text, words.split()


def tested():
    """A pattern that matches the sentences of test.txt, with any word at the mask."""
    return re.compile("|".join(re.escape(text.lower()).replace(re.escape("[mask]"), r"[\w ]+") for text, _ in tests("test.txt")))


def real():
    """(conversations, examples of a dictionary, other real texts)"""
    others = [*packages.definitions(), *packages.novels(), *packages.addresses(1945), *packages.factbook()]
    others += packages.snippets("nytEditorialSnippets", "movieReviewSnippets", "tweets", "amazonReviewSnippets")
    # Most long sentences cost more time than they are worth.
    others = [text for at, text in enumerate(others) if len(text.split()) <= 16 or at % 16 == 0]
    return [*packages.conversations()], [*packages.examples()], others


class Drawing:
    """Draws sentences of all sources by their shares, never one of test.txt."""

    def __init__(self, sources, seed):
        self.random, self.unwanted = random.Random(seed), tested()
        self.sources = [[text for text in texts if not self.unwanted.fullmatch(text.lower())] for texts in sources]
        self.orders = [[] for _ in sources]
        self.everyday = Everyday(self.random, FACTS)

    def one(self):
        draw = self.random.random() - EVERYDAY
        if draw < 0:
            text = self.everyday.one()
            return self.one() if self.unwanted.fullmatch(text.lower()) else text
        source = 0 if draw < CONVERSATIONS else 1 if draw < CONVERSATIONS + EXAMPLES else 2
        if not self.orders[source]:
            self.orders[source] = list(range(len(self.sources[source])))
            self.random.shuffle(self.orders[source])
        return self.sources[source][self.orders[source].pop()]


def build(texts):
    """The untrained model; its vocabulary is the pieces of MiniLM that are most frequent in the texts."""
    minilm = fetch()
    chosen, counts = frequent(minilm, texts, PIECES)
    tokenizer = BertTokenizer(vocab={token: at for at, token in enumerate(chosen)}, do_lower_case=True, model_max_length=LENGTH)
    config = BertConfig(
        vocab_size=len(chosen),
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=384,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    torch.manual_seed(SEED)
    model = BertForMaskedLM(config)
    model.bert.embeddings.word_embeddings.weight.data = projected(minilm, chosen, config.hidden_size)
    model.tie_weights()
    with torch.no_grad():  # initialised from the frequencies of the pieces
        model.cls.predictions.bias.copy_(torch.log(torch.tensor([counts[token] + 1.0 for token in chosen])) - 8)
    return model, tokenizer


def guidance(attentions, text, wanted, seen):
    """Mean lack of weight of the heads in PATTERNS.

    attentions: (B,H,L,L) of each layer; text, wanted, seen (B,L): pieces of the text, masked pieces, visible words with a meaning"""
    sums = 0.0
    both = text[:, 1:] & text[:, :-1]
    for (layer, head), kind in PATTERNS.items():
        weights, least = attentions[layer][:, head], LEAST[kind]
        if kind == "previous":
            shares = weights.diagonal(-1, 1, 2)[both]
        elif kind == "next":
            shares = weights.diagonal(1, 1, 2)[both]
        elif kind == "self":
            shares = weights.diagonal(0, 1, 2)[text]
        elif kind == "content":
            shares = (weights * seen[:, None]).sum(2)[wanted & seen.any(1, keepdim=True)]
        else:  # e^entropy is at least this share of the length
            entropy = -(weights * weights.clamp_min(1e-9).log()).sum(2)
            shares = (entropy - (text.sum(1, keepdim=True) + 2).log())[text]
            least = torch.tensor(least).log()
        sums = sums + F.relu(least - shares).mean()
    return sums


def fit(model, tokenizer, drawing):
    generator, mask = torch.Generator().manual_seed(SEED), SPECIAL.index("[MASK]")
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    meaning, pool = has_meaning(pieces), []
    marks = torch.tensor([all(c in string.punctuation for c in each) for each in pieces])
    # The one piece of each sentence that is always masked: mostly a word with a meaning, seldom a mark.
    weight = torch.where(meaning, 1.0, torch.where(marks, 0.1, 0.5))

    def loss(step):
        nonlocal pool
        drawing.everyday.facts = FACTS if step < 0.75 * STEPS else FACTS_AT_LAST
        if not pool:
            rows = tokenizer([drawing.one() for _ in range(16 * BATCH)], truncation=True, max_length=LENGTH)["input_ids"]
            rows.sort(key=len)
            pool = [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]
            drawing.random.shuffle(pool)
        input_ids, attention_mask = training.pad(pool.pop())
        text = input_ids >= len(SPECIAL)
        wanted = (torch.rand(input_ids.shape, generator=generator) < MASKED) & text
        lucky = torch.rand(input_ids.shape, generator=generator) * text * weight[input_ids]
        wanted |= (lucky == lucky.max(1, keepdim=True).values) & text
        rest = torch.rand(input_ids.shape, generator=generator)
        shown = torch.where(wanted & (rest < 0.92), mask, input_ids)
        other = torch.randint(len(SPECIAL), len(tokenizer), input_ids.shape, generator=generator)
        shown = torch.where(wanted & (rest > 0.97), other, shown)
        found = model.bert(shown, attention_mask=attention_mask, output_attentions=True)
        guided = guidance(found.attentions, text, shown == mask, meaning[shown])
        return F.cross_entropy(model.cls(found.last_hidden_state[wanted]), input_ids[wanted]) + GUIDANCE * guided

    return training.fit(model, STEPS, LEARNING_RATE, loss, fused=True)


def main():
    transformers.utils.logging.disable_progress_bar()
    training.reproducible()
    sources = real()
    distinct = sorted({text for texts in sources for text in texts})
    random.Random(SEED).shuffle(distinct)
    held_out = set(distinct[::HELD_OUT])
    sources = [[text for text in texts if text not in held_out] for texts in sources]
    print(f"{[len(texts) for texts in sources]} real sentences, {len(held_out)} held out", flush=True)
    drawing = Drawing(sources, SEED)
    model, tokenizer = build([drawing.one() for _ in range(100_000)])
    print(f"{sum(p.numel() for p in model.parameters())} weights, {len(tokenizer)} pieces", flush=True)
    built = ROOT / "build" / "masks"
    training.save(fit(model, tokenizer, drawing), tokenizer, built / "float32")
    (built / "held_out.json").write_text(json.dumps(sorted(held_out), ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
