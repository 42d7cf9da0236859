"""testdata/tokenizers/draws.json: results of Hugging Face tokenizers for random texts, as one digest per tokenizer: those of the checkpoints, those
with one part each, and random combinations of parts. The suite of the package and the native tests draw the same texts and compare digests."""

import json
import random

from tokenizers import Tokenizer

import common
import tokenizer_cases as cases

TEXTS = 100
SEED = 0x70C00000
PIECES = [*"the hello world film [MASK] <mask> <s> </s> [CLS] happy unhappy SPACES Café café caf __proto__ é 'S n't 're 'LL 'ſ ab abc aab newest".split()]
PIECES += [*"Ⅷ ½ ﬁ İ Σ ß ǅ e\u0301 q\u0323\u0307 \u1112\u1161\u11ab ﷺ ©\u200d❤ 👩\u200d👩\u200d👧 ▁the Ġthe ## XMLHttp 12345 中AB 中文 # ' ... a b x xy qu".split()]
PIECES += ["  ", "     ", "\r\n ", "\n\n", "\t", "\u3000", "a" * 30]
RANGES = [(0x20, 0x7E), (0x61, 0x7A), (0x41, 0x5A), (0x0, 0x20), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x591, 0x6FF), (0x900, 0xDFF)]
RANGES += [(0xE00, 0xFFF), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x22FF), (0x2C60, 0x2C7F), (0x3000, 0x33FF), (0x4E00, 0x9FFF)]
RANGES += [(0xA640, 0xA7FF), (0xAC00, 0xD7A3), (0xF900, 0xFFFF), (0x10000, 0x11FFF), (0x1D100, 0x1D7FF), (0x1F300, 0x1FAFF), (0x0, 0xD7FF)]
RANGES += [(0xE000, 0x10FFFF)]
COUNTS = [0, 1, 2, 3, 5, 8, 13, 20]
MIXED = 60


class Generator:
    """splitmix32, as in wasm-tests/support/generator.ts."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B9) & 0xFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
        z = ((z ^ (z >> 15)) * 0x735A2D97) & 0xFFFFFFFF
        return z ^ (z >> 15)

    def below(self, n):
        return self.next() * n >> 32

    def pick(self, items):
        return items[self.below(len(items))]


def text(g):
    parts = []
    for _ in range(g.pick(COUNTS)):
        kind = g.below(10)
        if kind < 3:
            parts.append(g.pick(PIECES))
        elif kind == 3:
            parts.append(" ")
        else:
            first, last = g.pick(RANGES)
            parts.append(chr(first + g.below(last - first + 1)))
    return "".join(parts)


class Digest:
    """FNV-1a, one word at a time."""

    def __init__(self):
        self.value = 0x811C9DC5

    def fold(self, word):
        self.value = ((self.value ^ word) * 0x01000193) & 0xFFFFFFFF

    def fold_text(self, text):
        self.fold(len(text))
        for char in text:
            self.fold(ord(char))


def digest(tokenizer, run):
    """Ids, types, tokens, offsets in characters, and whether a text was truncated; a refused text counts as one word."""
    tokenizer.no_padding()
    found = Digest()
    for i in range(TEXTS):
        g = Generator(SEED + run * TEXTS + i)
        texts = [text(g)]
        if g.below(5) == 0:
            texts.append(text(g))
        most = 8 + g.below(8) if g.below(4) == 0 else None
        if most is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(most)
        try:
            encoding = tokenizer.encode(*texts)
        except Exception:
            found.fold(0xDEAD)
            continue
        for id, type_id, token, special, (start, end) in zip(
            encoding.ids, encoding.type_ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets
        ):
            found.fold(id)
            found.fold(type_id)
            found.fold_text(token)
            if len(texts) == 1:  # the package does not report to which text an offset belongs
                found.fold(0 if special else start + 1)
                found.fold(0 if special else end + 1)
        found.fold(len(encoding.ids))
        found.fold(1 if encoding.overflowing else 0)
    return found.value


def mixed(variants):
    """Names of variants whose parts are combined; if two have the same part, the later one applies."""
    draw = random.Random(7)
    names = [name for name, _ in variants]
    for _ in range(MIXED):
        yield draw.sample(names, 4)


def generate():
    runs = []
    for name in cases.CHECKPOINTS:
        tokenizer = Tokenizer.from_file(str(common.TESTDATA / "models" / name / "tokenizer.json"))
        runs.append({"checkpoint": name, "digest": digest(tokenizer, len(runs))})
    variants = list(cases.variants())
    parts = dict(variants)
    for names in [*([name] for name, _ in variants), *mixed(variants)]:
        merged = {}
        for name in names:
            merged |= parts[name]
        runs.append({"variants": names, "digest": digest(cases.load(merged), len(runs))})
    head = {"texts": TEXTS, "seed": SEED, "counts": COUNTS, "pieces": PIECES, "ranges": RANGES}
    cases.write("draws", head, "runs", [cases.line(run) for run in runs])


if __name__ == "__main__":
    generate()
