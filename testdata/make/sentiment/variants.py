"""More texts for the teacher to rate, derived from existing ones: parts, combinations of two parts, and texts with some words replaced.

They need not make sense: from them the small model learns how the teacher rates combinations of words."""

import random
import re

import torch

NEIGHBOURS = 12
SEPARATORS = re.compile(r"(?:\s*[,;:()?!]\s*|\s+-+\s+|\.+(?:\s+|$)|\s+(?=(?:but|and|yet|though|although|while|because|so|as|that|which|who|with)\b))")
JOINTS = (", but ", " and ", ", yet ", "; ", ". ", ", and ", " although ", ", though ", " because ", ". However, ", " but ", ", while ")


def clauses(text):
    parts = (re.sub(r"^(?:but|and|yet)\b", "", part).strip(" '\"") for part in SEPARATORS.split(text))
    return [part for part in parts if len(part.split()) >= 2 and part != text]


def span(text, draw):
    """2 to 12 consecutive words."""
    found = text.split()
    length = min(len(found), draw.randint(2, 12))
    start = draw.randint(0, len(found) - length)
    return " ".join(found[start : start + length])


class Neighbours:
    """Finds the words whose embeddings are most similar to that of a word."""

    def __init__(self, table, vocabulary, texts):
        words = sorted({word for text in texts for word in re.findall(r"[a-z]{3,}", text.lower())} & vocabulary.keys())
        rows = table[[vocabulary[word] for word in words]].double()
        rows = torch.nn.functional.normalize(rows - rows.mean(0), dim=1)
        self.found = {}
        for start in range(0, len(words), 1024):
            near = (rows[start : start + 1024] @ rows.T).topk(NEIGHBOURS + 1, dim=1).indices.tolist()
            self.found.update((words[start + i], [words[j] for j in row if j != start + i]) for i, row in enumerate(near))

    def replaced(self, text, draw, share):
        def other(match):
            near = self.found.get(match.group().lower())
            return draw.choice(near) if near and draw.random() < share else match.group()

        return re.sub(r"[A-Za-z]{3,}", other, text)


def variants(texts, neighbours, each, seed):
    """`each` rounds over all texts; each round yields per text a version with other words, a part, and a part joined to a part of another text."""
    draw = random.Random(seed)
    parts = [clauses(text) or [text] for text in texts]
    found = []
    for _ in range(each):
        for text, own in zip(texts, parts):
            found.append(neighbours.replaced(text, draw, draw.choice((0.1, 0.25, 0.4))))
            found.append(draw.choice(own) if draw.random() < 0.6 else span(text, draw))
            both = draw.choice(own) + draw.choice(JOINTS) + draw.choice(draw.choice(parts))
            found.append(neighbours.replaced(both, draw, 0.1))
    known = set(texts)
    return [text for text in dict.fromkeys(found) if text not in known]
