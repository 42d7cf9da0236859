"""Trains the entity model on sentences from templates and on real sentences labelled by spaCy, and writes it as float32 to build/entities/float32.

Usage: testdata/make/entities/make.sh, which also converts the model to int8 and measures it.
"""

import json
import random
import sys
from collections import Counter
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch.nn import functional as F
from transformers import BertConfig, BertForTokenClassification, BertTokenizer

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "testdata" / "make" / "goldens"), str(ROOT / "testdata" / "make" / "corpora")]
import templates  # noqa: E402
import training  # noqa: E402
from fetch_models import fetch  # noqa: E402
from gazetteers import Names  # noqa: E402
from word_table import SPECIAL, projected  # noqa: E402

SEED = 0
TYPES = ["PER", "ORG", "LOC", "DATE", "MISC"]
LABELS = ["O", *(f"{begin}-{kind}" for kind in TYPES for begin in "BI")]
PIECES = 7600
STEPS = 7000
BATCH = 32
LENGTH = 128
LEARNING_RATE = 1.5e-3
REAL = 0.55  # share of real sentences
REPLACED = 0.6  # share of replaced names in half of the real sentences
LOWER = 0.03  # share of lowercase sentences
HELD_OUT = 40  # one in so many real sentences


def vocabulary(texts):
    """A vocabulary of cased word pieces of these texts. The trainer breaks ties at random, so a few pieces differ between runs."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    alphabet = [chr(code) for code in (*range(33, 127), *range(0xC0, 0x180))]
    trainer = trainers.WordPieceTrainer(vocab_size=PIECES, special_tokens=SPECIAL, initial_alphabet=alphabet, limit_alphabet=400, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    found = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return {piece: at for at, (piece, _) in enumerate(found)}


def build(texts):
    vocab = vocabulary(texts)
    tokenizer = BertTokenizer(vocab=vocab, do_lower_case=False, strip_accents=False, model_max_length=LENGTH)
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        id2label=dict(enumerate(LABELS)),
        label2id={label: at for at, label in enumerate(LABELS)},
    )
    torch.manual_seed(SEED)
    model = BertForTokenClassification(config)
    model.bert.embeddings.word_embeddings.weight.data = projected(fetch(), [*vocab], config.hidden_size)
    return model, tokenizer


def encode(tokenizer, text, spans):
    """(ids, labels): B- for the first piece of a name, I- for the others."""
    encoding = tokenizer.backend_tokenizer.encode(text)
    labels, at, last = [], 0, None
    for start, end in encoding.offsets:
        if start == end:
            labels.append(-100)
            continue
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        inside = at < len(spans) and spans[at][0] <= start
        labels.append(LABELS.index(f"{'I' if last == at else 'B'}-{spans[at][2]}") if inside else 0)
        last = at if inside else None
    ids = encoding.ids
    if len(ids) > LENGTH:
        ids, labels = [*ids[: LENGTH - 1], ids[-1]], [*labels[: LENGTH - 1], -100]
    return ids, labels


class Sentences:
    """Draws training sentences without end."""

    def __init__(self, real):
        self.names = Names(SEED)
        self.real = real
        with_names = [row for row in real if row[1]]
        self.pools = [with_names, with_names, real]

    def one(self):
        draw = self.names.random
        if draw.random() < REAL:
            row = self.names.one(self.pools[draw.randrange(3)])
            text, spans = templates.replaced(row, self.names, REPLACED) if draw.random() < 0.5 else row
        else:
            text, spans = templates.templates(self.names)
        if draw.random() < 0.12 and text[-1:] in ".!":
            text = text[:-1]
        if draw.random() < LOWER and len(text.lower()) == len(text):
            text = text.lower()
        return text, spans


def fit(model, tokenizer, sentences, steps):
    pool, unknown = [], torch.Generator().manual_seed(SEED)

    def loss(_):
        nonlocal pool
        if not pool:
            rows = sorted((encode(tokenizer, *sentences.one()) for _ in range(16 * BATCH)), key=lambda row: len(row[0]))
            pool = [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]
            sentences.names.random.shuffle(pool)
        rows = pool.pop()
        input_ids, attention_mask = training.pad([ids for ids, _ in rows])
        labels = torch.tensor([found + [-100] * (input_ids.shape[1] - len(found)) for _, found in rows])
        # Hides some pieces, so that the model learns from the context.
        hidden = (torch.rand(input_ids.shape, generator=unknown) < 0.08) & (input_ids >= len(SPECIAL))
        input_ids = input_ids.masked_fill(hidden, SPECIAL.index("[MASK]"))
        logits = model(input_ids, attention_mask=attention_mask).logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=0.03)

    return training.fit(model, steps, LEARNING_RATE, loss)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    transformers.utils.logging.disable_progress_bar()
    training.reproducible()
    rows = json.loads((ROOT / "build" / "entities" / "labelled.json").read_text("utf-8"))
    rows = [[text, spans] for text, spans in rows if all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))]
    random.Random(SEED).shuffle(rows)
    held_out, real = rows[::HELD_OUT], [row for at, row in enumerate(rows) if at % HELD_OUT]
    print(f"{len(real)} real sentences, {len(held_out)} held out; {Counter(kind for _, spans in real for *_, kind in spans)}")
    sentences = Sentences(real)
    model, tokenizer = build(sentences.one()[0] for _ in range(150_000))
    print(f"{sum(p.numel() for p in model.parameters())} weights, {len(tokenizer)} pieces", flush=True)
    model = fit(model, tokenizer, sentences, steps)
    folder = ROOT / "build" / "entities" / "float32"
    training.save(model, tokenizer, folder)
    (folder.parent / "held_out.json").write_text(json.dumps(held_out, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
