"""Trains the mask model on real sentences and on templates of everyday life, and writes it as float32 to build/masks/float32.

A second, shorter round has more of the facts about countries, which each occur seldom in the first.

Usage: tools/masks/make.sh, which then makes int8 files of it and measures them. With --second only the second round is run, on build/masks/first.
"""

import copy
import json
import random
import re
import string
import sys
from collections import Counter
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools" / "goldens"), str(ROOT / "tools" / "sentiment"), str(ROOT / "tools" / "corpora")]
import packages  # noqa: E402
from batches import pad, rise_and_fall  # noqa: E402
from everyday import Everyday  # noqa: E402
from fetch_minilm import fetch  # noqa: E402
from word_table import projected  # noqa: E402

SEED = 0
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = 6500
STEPS, STEPS_OF_FACTS = 7000, 2500
BATCH = 32
LENGTH = 64
LEARNING_RATE, LEARNING_RATE_OF_FACTS = 1.8e-3, 1.2e-3
MASKED = 0.18
EVERYDAY = 0.3  # of the sentences are of templates
FACTS = 0.4  # of these are facts, in the second round
KEEP = 0.998
HELD_OUT = 40  # every so many of the real sentences


def tests():
    """(text with [MASK], words that are right) of test.txt."""
    for line in (Path(__file__).parent / "test.txt").read_text("utf-8").splitlines():
        text, _, words = line.partition(" | ")
        yield text, words.split()


def real():
    """Sentences without those of test.txt, whatever stands at the mask."""
    texts = [*packages.examples(), *packages.examples(), *packages.definitions(), *packages.novels(), *packages.addresses(1945), *packages.factbook()]
    texts += packages.snippets("nytEditorialSnippets", "movieReviewSnippets", "tweets", "amazonReviewSnippets")
    unwanted = tested()
    return [text for text in texts if not unwanted.fullmatch(text.lower())]


def tested():
    """What matches the sentences of test.txt."""
    return re.compile("|".join(re.escape(text.lower()).replace(re.escape("[mask]"), r"[\w ]+") for text, _ in tests()))


def build(texts):
    """The untrained model; its pieces are those of MiniLM that occur most often in the texts."""
    minilm = fetch()
    whole = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    whole.no_truncation()
    whole.no_padding()
    counts = Counter(token for encoding in whole.encode_batch(texts, add_special_tokens=False) for token in encoding.tokens)
    ids = whole.get_vocab()
    alphabet = string.ascii_lowercase + string.digits
    certain = {*string.punctuation, *alphabet, *("##" + letter for letter in alphabet)}
    found = sorted(counts.keys() - certain - {*SPECIAL}, key=lambda token: (-counts[token], ids[token]))
    chosen = SPECIAL + sorted([*certain, *found[: PIECES - len(SPECIAL) - len(certain)]], key=ids.get)
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
    with torch.no_grad():  # how often a piece occurs is known from the start
        model.cls.predictions.bias.copy_(torch.log(torch.tensor([counts[token] + 1.0 for token in chosen])) - 8)
    return model, tokenizer


def fit(model, tokenizer, ids, everyday, steps, learning_rate):
    mean = copy.deepcopy(model).eval()
    parameters, averaged = list(model.parameters()), list(mean.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98))
    schedule = rise_and_fall(optimizer, steps)
    generator, draw = torch.Generator().manual_seed(SEED), random.Random(SEED)
    unwanted, mask = tested(), SPECIAL.index("[MASK]")
    order, pool = [], []
    model.train()
    for step in range(steps):
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
        input_ids, attention_mask = pad(pool.pop())
        wanted = (torch.rand(input_ids.shape, generator=generator) < MASKED) & (input_ids >= len(SPECIAL))
        # One piece of every sentence at the least: short ones are as important.
        lucky = torch.rand(input_ids.shape, generator=generator) * (input_ids >= len(SPECIAL))
        wanted |= (lucky == lucky.max(1, keepdim=True).values) & (input_ids >= len(SPECIAL))
        rest = torch.rand(input_ids.shape, generator=generator)
        shown = torch.where(wanted & (rest < 0.88), mask, input_ids)
        other = torch.randint(len(SPECIAL), len(tokenizer), input_ids.shape, generator=generator)
        shown = torch.where(wanted & (rest > 0.95), other, shown)
        hidden = model.bert(shown, attention_mask=attention_mask).last_hidden_state[wanted]
        loss = F.cross_entropy(model.cls(hidden), input_ids[wanted])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        keep = min(KEEP, (step + 1) / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(averaged, parameters, 1 - keep)
        if step % 250 == 0:
            print(f"step {step} of {steps}, loss {loss.item():.3f}", flush=True)
    return mean


def write(model, tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = str(folder / "tokenizer.json")
    Tokenizer.from_file(path).save(path, pretty=False)


def main():
    transformers.utils.logging.disable_progress_bar()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_num_threads(1)  # sums depend on it
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
        write(fit(model, tokenizer, ids, everyday, STEPS, LEARNING_RATE), tokenizer, built / "first")
    tokenizer = BertTokenizer.from_pretrained(built / "first")
    model = BertForMaskedLM.from_pretrained(built / "first")
    ids = tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]
    torch.manual_seed(SEED)
    everyday = Everyday(random.Random(SEED + 1), FACTS)
    write(fit(model, tokenizer, ids, everyday, STEPS_OF_FACTS, LEARNING_RATE_OF_FACTS), tokenizer, built / "float32")
    (built / "held_out.json").write_text(json.dumps(sorted(held_out), ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
