"""The start of a small model's word table: all-MiniLM-L6-v2's, projected."""

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

WORD_STD = 0.1


def projected(minilm, pieces, width):
    """The principal components of what MiniLM has for these pieces, small letters or not; for those it has not, the mean of their parts: (V, width)."""
    table = load_file(minilm / "model.safetensors")["embeddings.word_embeddings.weight"].double()
    tokenizer = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
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
