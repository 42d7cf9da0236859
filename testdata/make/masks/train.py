"""Trains the mask model on real sentences and on templates of everyday life, and writes it as float32 to build/masks/float32.

A second, shorter round has more facts about countries, each of which is rare in the first round.

Usage: testdata/make/masks/make.sh, which also converts the model to int8 and measures it. --second runs only the second round, on build/masks/first.
"""

import json
import random
import re
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
from word_table import SPECIAL, frequent, projected  # noqa: E402

SEED = 0
PIECES = 6500
STEPS, STEPS_OF_FACTS = 7000, 2500
BATCH = 32
LENGTH = 64
LEARNING_RATE, LEARNING_RATE_OF_FACTS = 1.8e-3, 1.2e-3
MASKED = 0.18
EVERYDAY = 0.3  # share of sentences from templates
FACTS = 0.4  # share of facts among them, in the second round
HELD_OUT = 40  # one in so many real sentences


def tests():
    """(text with [MASK], correct words) of test.txt."""
    for line in (Path(__file__).parent / "test.txt").read_text("utf-8").splitlines():
        text, _, words = line.partition(" | ")
        yield text, words.split()


def real():
    """Real sentences without those of test.txt, regardless of the masked word."""
    texts = [*packages.examples(), *packages.examples(), *packages.definitions(), *packages.novels(), *packages.addresses(1945), *packages.factbook()]
    texts += packages.snippets("nytEditorialSnippets", "movieReviewSnippets", "tweets", "amazonReviewSnippets")
    unwanted = tested()
    return [text for text in texts if not unwanted.fullmatch(text.lower())]


def tested():
    """A pattern that matches the sentences of test.txt."""
    return re.compile("|".join(re.escape(text.lower()).replace(re.escape("[mask]"), r"[\w ]+") for text, _ in tests()))


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
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.05,
    )
    torch.manual_seed(SEED)
    model = BertForMaskedLM(config)
    model.bert.embeddings.word_embeddings.weight.data = projected(minilm, chosen, config.hidden_size)
    model.tie_weights()
    with torch.no_grad():  # initialised from the frequencies of the pieces
        model.cls.predictions.bias.copy_(torch.log(torch.tensor([counts[token] + 1.0 for token in chosen])) - 8)
    return model, tokenizer


def fit(model, tokenizer, ids, everyday, steps, learning_rate):
    generator, draw = torch.Generator().manual_seed(SEED), random.Random(SEED)
    unwanted, mask = tested(), SPECIAL.index("[MASK]")
    order, pool = [], []

    def loss(_):
        nonlocal order, pool
        if not pool:
            rows = []
            templates = [text for text in (everyday.one() for _ in range(int(EVERYDAY * 16 * BATCH))) if not unwanted.fullmatch(text.lower())]
            rows += tokenizer(templates, truncation=True, max_length=LENGTH)["input_ids"]
            while len(rows) < 16 * BATCH:
                if not order:
                    order = list(range(len(ids)))
                    draw.shuffle(order)
                rows.append(ids[order.pop()])
            rows.sort(key=len)
            pool = [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]
            draw.shuffle(pool)
        input_ids, attention_mask = training.pad(pool.pop())
        wanted = (torch.rand(input_ids.shape, generator=generator) < MASKED) & (input_ids >= len(SPECIAL))
        # At least one piece per sentence: short ones are as important.
        lucky = torch.rand(input_ids.shape, generator=generator) * (input_ids >= len(SPECIAL))
        wanted |= (lucky == lucky.max(1, keepdim=True).values) & (input_ids >= len(SPECIAL))
        rest = torch.rand(input_ids.shape, generator=generator)
        shown = torch.where(wanted & (rest < 0.88), mask, input_ids)
        other = torch.randint(len(SPECIAL), len(tokenizer), input_ids.shape, generator=generator)
        shown = torch.where(wanted & (rest > 0.95), other, shown)
        hidden = model.bert(shown, attention_mask=attention_mask).last_hidden_state[wanted]
        return F.cross_entropy(model.cls(hidden), input_ids[wanted])

    return training.fit(model, steps, learning_rate, loss)


def main():
    transformers.utils.logging.disable_progress_bar()
    training.reproducible()
    texts = real()
    distinct = sorted(set(texts))
    random.Random(SEED).shuffle(distinct)
    held_out = set(distinct[::HELD_OUT])
    texts = [text for text in texts if text not in held_out]
    built = ROOT / "build" / "masks"
    print(f"{len(texts)} real sentences, {len(held_out)} held out", flush=True)
    if "--second" not in sys.argv:
        everyday = Everyday(random.Random(SEED))
        model, tokenizer = build([*texts, *(everyday.one() for _ in range(60_000))])
        print(f"{sum(p.numel() for p in model.parameters())} weights, {len(tokenizer)} pieces", flush=True)
        ids = tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]
        training.save(fit(model, tokenizer, ids, everyday, STEPS, LEARNING_RATE), tokenizer, built / "first")
    tokenizer = BertTokenizer.from_pretrained(built / "first")
    model = BertForMaskedLM.from_pretrained(built / "first")
    ids = tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]
    torch.manual_seed(SEED)
    everyday = Everyday(random.Random(SEED + 1), FACTS)
    training.save(fit(model, tokenizer, ids, everyday, STEPS_OF_FACTS, LEARNING_RATE_OF_FACTS), tokenizer, built / "float32")
    (built / "held_out.json").write_text(json.dumps(sorted(held_out), ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
