"""testdata/words.json: a hand-made embedding table, and cosine similarities in it."""

import json

import torch
import torch.nn.functional as F

import common

AXES = ["royal", "male", "grown", "human", "simpson", "animal", "large", "food"]
TABLE = {
    "king": [0.97, 0.42, 0.41, 0.80, 0.00, 0.00, 0.10, 0.00],
    "queen": [0.98, -0.38, 0.39, 0.81, 0.00, 0.00, 0.05, 0.00],
    "prince": [0.86, 0.40, -0.52, 0.79, 0.00, 0.00, 0.02, 0.00],
    "princess": [0.85, -0.44, -0.50, 0.78, 0.00, 0.00, -0.03, 0.00],
    "man": [0.02, 0.47, 0.45, 0.98, 0.03, 0.00, 0.12, 0.00],
    "woman": [0.03, -0.45, 0.44, 0.97, 0.02, 0.00, 0.04, 0.00],
    "boy": [0.01, 0.46, -0.61, 0.93, 0.05, 0.00, -0.21, 0.00],
    "girl": [0.04, -0.48, -0.58, 0.94, 0.04, 0.00, -0.26, 0.00],
    "homer": [0.00, 0.44, 0.37, 0.72, 0.96, 0.00, 0.24, 0.20],
    "marge": [0.00, -0.43, 0.40, 0.74, 0.95, 0.00, 0.11, 0.05],
    "bart": [0.00, 0.45, -0.55, 0.70, 0.98, 0.00, -0.20, 0.02],
    "lisa": [0.02, -0.46, -0.53, 0.73, 0.97, 0.00, -0.24, 0.01],
    "dog": [0.00, 0.08, 0.30, 0.12, 0.02, 0.96, -0.10, 0.00],
    "puppy": [0.00, 0.06, -0.62, 0.13, 0.01, 0.93, -0.42, 0.00],
    "cat": [0.05, -0.07, 0.28, 0.08, 0.03, 0.95, -0.33, 0.00],
    "kitten": [0.02, -0.10, -0.60, 0.09, 0.00, 0.92, -0.58, 0.00],
    "lion": [0.46, 0.21, 0.42, 0.00, 0.00, 0.94, 0.55, 0.00],
    "elephant": [0.06, 0.00, 0.50, 0.03, 0.00, 0.90, 0.98, 0.00],
    "bread": [0.00, 0.00, 0.05, 0.04, 0.00, 0.02, -0.12, 0.97],
    "apple": [0.04, -0.04, 0.02, 0.00, 0.01, 0.08, -0.35, 0.95],
    "doughnut": [0.00, 0.05, -0.08, 0.02, 0.31, 0.00, -0.28, 0.94],
}
WORDS = list(TABLE)
GAP = 1e-4  # similarities differ by more, so rounding does not change the order


def nearest(table, words, target, left_out, k):
    similar = F.cosine_similarity(table, target[None], dim=-1, eps=0)
    order = [i for i in similar.argsort(descending=True).tolist() if i not in left_out]
    values = similar[order[: k + 1]]
    assert bool((values[:-1] - values[1:] > GAP).all()), [(words[i], float(similar[i])) for i in order[: k + 1]]
    return [{"id": i, "word": words[i], "similarity": round(float(similar[i]), 12)} for i in order[:k]]


def generate():
    weight = torch.tensor(list(TABLE.values()))
    table = weight.double()
    result = {"axes": AXES, "words": WORDS, "table": [[float(v) for v in row] for row in TABLE.values()]}

    result["similarity"] = [
        {"a": a, "b": b, "similarity": round(float(F.cosine_similarity(table[WORDS.index(a)], table[WORDS.index(b)], dim=0, eps=0)), 12)}
        for a, b in (("king", "queen"), ("king", "bread"), ("man", "boy"), ("dog", "dog"), ("puppy", "elephant"), ("apple", "lisa"))
    ]
    result["nearest"] = [
        {"target": word, "k": k, "expected": nearest(table, WORDS, table[WORDS.index(word)], {WORDS.index(word)}, k)}
        for word, k in (("king", 1), ("king", 5), ("queen", 2), ("bart", 3), ("marge", 1), ("dog", 4), ("lion", 2), ("doughnut", 2), ("woman", 20))
    ]
    vector = [0.0, 0.0, -0.5, 0.0, 0.0, 1.0, -0.25, 0.0]
    result["nearest_to_vector"] = [{"target": vector, "k": 3, "expected": nearest(table, WORDS, torch.tensor(vector).double(), set(), 3)}]
    result["analogy"] = []
    for a, b, c, answer in (
        ("man", "bart", "woman", "lisa"),
        ("man", "king", "woman", "queen"),
        ("king", "prince", "queen", "princess"),
        ("man", "boy", "woman", "girl"),
        ("dog", "puppy", "cat", "kitten"),
        ("homer", "bart", "marge", "lisa"),
        ("woman", "man", "marge", "homer"),
    ):
        ids = [WORDS.index(word) for word in (a, b, c)]
        target = table[ids[1]] - table[ids[0]] + table[ids[2]]
        found = nearest(table, WORDS, target, set(ids), 3)
        assert found[0]["word"] == answer, (a, b, c, found)
        result["analogy"].append({"a": a, "b": b, "c": c, "k": 3, "expected": found})
    assert result["nearest"][0]["expected"][0]["word"] == "queen"

    def lines(name):
        return f'  "{name}": [\n' + ",\n".join("    " + json.dumps(entry) for entry in result[name]) + "\n  ]"

    head = [f'  "{name}": {json.dumps(result[name])}' for name in ("axes", "words")]
    text = "{\n" + ",\n".join(head + [lines(n) for n in ("table", "similarity", "nearest", "nearest_to_vector", "analogy")]) + "\n}\n"
    assert json.loads(text) == result
    path = common.TESTDATA / "words.json"
    path.write_text(text)
    print(f"{path.relative_to(common.ROOT)}: {len(WORDS)} words, {len(text)} bytes")


if __name__ == "__main__":
    generate()
