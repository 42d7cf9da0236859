"""testdata/tokenizers/words.json: lists of words as input of Hugging Face tokenizers (is_pretokenized), and texts of different lengths that are
padded on either side."""

import random

from tokenizers import Tokenizer

import common
import tokenizer_cases as cases

LISTS = [
    [],
    [""],
    ["A", "happy", "person", "smiles", "."],
    ["unhappiness", "", "[MASK]", " ", "<mask>", "don't"],
    ["two words", " led by a space", "and trailing "],
    ["😀é", "e\u0301", "中文", "👩\u200d👩", "\u0301x", "İ"],
    ["##ing", "▁the", "Ġthe", "ﬁne", "½", "\u3000", "ǅ"],
    ["a" * 120, "b"],
]
PARTS = (
    "added tokens",
    "added tokens, normalised",
    "BPE, prefix and suffix",
    "ByteLevel at the end",
    "ByteLevel, then a template",
    "ByteLevel with a prefix",
    "Metaspace first",
    "Prepend",
    "RobertaProcessing",
    "Strip",
    "TemplateProcessing",
    "Unigram",
    "WordPiece",
)


def drawn(draw):
    words = [word for text in cases.TEXTS[4:40] for word in text.split(" ") if len(word) < 12]
    return [draw.choice(words) for _ in range(draw.randrange(1, 9))]


def case(tokenizer, first, second=None, max_length=None, special=True, side="right"):
    tokenizer.no_padding()
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length, direction=side)
    encoding = tokenizer.encode(first, second, is_pretokenized=True, add_special_tokens=special)
    lists = (first, second or [])
    offsets, words = [], []
    for (start, end), word, is_special, sequence in zip(
        encoding.offsets, encoding.word_ids, encoding.special_tokens_mask, encoding.sequence_ids
    ):
        places = None if is_special else cases.utf16(lists[sequence or 0][word])
        offsets.append(places and [places[start], places[end]])
        words.append(None if is_special else word)
    result = {"words": first}
    if second is not None:
        result["pair"] = second
    if max_length is not None:
        result |= {"maxLength": max_length, "truncationSide": side, "truncated": bool(encoding.overflowing)}
    if not special:
        result["addSpecialTokens"] = False
    result["ids"] = encoding.ids
    if any(encoding.type_ids):
        result["typeIds"] = encoding.type_ids
    return result | {"tokens": encoding.tokens, "offsets": offsets, "of": words}


def words(tokenizer, draw):
    added = [len(tokenizer.encode([], second, is_pretokenized=True).ids) for second in (None, [])]
    for each in LISTS:
        yield case(tokenizer, each)
    yield case(tokenizer, LISTS[2], special=False)
    yield case(tokenizer, LISTS[3], LISTS[5])
    for side in ("left", "right"):
        yield case(tokenizer, LISTS[5], max_length=added[0] + 3, side=side)
        for _ in range(3):
            yield case(tokenizer, drawn(draw), drawn(draw), max_length=added[1] + draw.randrange(2, 12), side=side)
        yield case(tokenizer, drawn(draw), max_length=draw.randrange(2, 6), special=False, side=side)


def filled(tokenizer, side):
    """Three texts, padded with the token that attn would choose."""
    found = next((token for token in ("[PAD]", "<pad>") if tokenizer.token_to_id(token) is not None), None)
    tokenizer.no_truncation()
    tokenizer.enable_padding(direction=side, pad_id=tokenizer.token_to_id(found) if found else 0, pad_token=found or "[PAD]")
    texts = ["A happy person.", "", "unhappiness and the child"]
    encodings = tokenizer.encode_batch(texts)
    rows = {name: [getattr(encoding, name) for encoding in encodings] for name in ("ids", "type_ids", "tokens", "attention_mask")}
    return {"texts": texts, "paddingSide": side, **rows}


def generate():
    draw = random.Random(26)
    made = []

    def add(name, tokenizer):
        runs = list(words(tokenizer, draw))
        made.append(cases.line(name | {"cases": runs, "filled": [filled(tokenizer, side) for side in ("left", "right")]}))

    for name in cases.CHECKPOINTS:
        add({"checkpoint": name}, Tokenizer.from_file(str(common.TESTDATA / "models" / name / "tokenizer.json")))
    parts = dict(cases.variants())
    for name in PARTS:
        add({"variant": name}, cases.load(parts[name]))
    cases.write("words", {}, "runs", made)


if __name__ == "__main__":
    generate()
