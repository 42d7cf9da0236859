"""The initial word embeddings of a small model: word pieces of all-MiniLM-L6-v2 and their embeddings, projected to a smaller width."""

import string
from collections import Counter

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORD_STD = 0.1


def tokenizer_of(minilm):
    tokenizer = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def frequent(minilm, texts, size):
    """(pieces, occurrences of each): the word pieces of MiniLM's tokenizer that are most frequent in the texts, in MiniLM's order.

    Single ASCII characters are always included, so that every ASCII word can be composed; film snippets have no hyphens, for example."""
    tokenizer = tokenizer_of(minilm)
    counts = Counter(token for encoding in tokenizer.encode_batch(texts, add_special_tokens=False) for token in encoding.tokens)
    ids = tokenizer.get_vocab()
    alphabet = string.ascii_lowercase + string.digits
    certain = {*string.punctuation, *alphabet, *("##" + letter for letter in alphabet)}
    found = sorted(counts.keys() - certain - {*SPECIAL}, key=lambda token: (-counts[token], ids[token]))
    return SPECIAL + sorted([*certain, *found[: size - len(SPECIAL) - len(certain)]], key=ids.get), counts


def projected(minilm, pieces, width):
    """Principal components (V, width) of MiniLM's embeddings of the pieces in lowercase. A piece that MiniLM lacks gets the mean of its parts."""
    table = load_file(minilm / "model.safetensors")["embeddings.word_embeddings.weight"].double()
    tokenizer = tokenizer_of(minilm)
    vocabulary = tokenizer.get_vocab()
    rows = []
    for piece in pieces:
        if piece in vocabulary:
            rows.append([vocabulary[piece]])
            continue
        small = piece.lower()
        if small in vocabulary:
            rows.append([vocabulary[small]])
            continue
        ids = tokenizer.encode(small.removeprefix("##"), add_special_tokens=False).ids
        rows.append(ids or [vocabulary["[UNK]"]])
    found = torch.stack([table[row].mean(0) for row in rows])
    found -= found.mean(0)
    _, _, components = torch.linalg.svd(found, full_matrices=False)
    words = found @ components[:width].T
    return (words * (WORD_STD / words.std())).float()
