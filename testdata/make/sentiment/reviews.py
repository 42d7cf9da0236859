"""Writes the film reviews on which visitors of the page train a small model: web/page/src/train/reviews.bin.

They are short and clear reviews from the training half (data.py), never from the held-out half. The file contains the words, one per line, a byte 0,
and for each review two bytes, little-endian: its number of words, plus 32768 if it is positive; then two bytes for each word: its line. Word 0 stands
for all rare words. The training on the page holds out every fifth review.
"""

import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import data

OUT = data.ROOT / "web" / "page" / "src" / "train" / "reviews.bin"
MOST_WORDS = 23
LEAST_RATING = 0.8
LEAST_COUNT = 3
RARE = "[UNK]"


def words(text):
    """Splits a text like the tokenizer of a trained model: lowercase, and each punctuation mark separately."""
    return re.findall(r"[^\W_]+|[^\w\s]|_", text.lower())


def main():
    chosen = [(snippet.label, words(snippet.text)) for snippet in data.films()[0] if abs(snippet.rating) >= LEAST_RATING]
    chosen = [(label, review) for label, review in chosen if 3 <= len(review) <= MOST_WORDS]
    counts = Counter(word for _, review in chosen for word in review)
    common = sorted((word for word, count in counts.items() if count >= LEAST_COUNT), key=lambda word: (-counts[word], word))
    vocabulary = [RARE, *common]
    ids = {word: i for i, word in enumerate(vocabulary)}
    numbers = []
    for label, review in chosen:
        numbers += [len(review) + 32768 * label, *(ids.get(word, 0) for word in review)]
    content = "\n".join(vocabulary).encode() + b"\0" + b"".join(number.to_bytes(2, "little") for number in numbers)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_bytes(content)
    positive = sum(label for label, _ in chosen)
    print(f"{OUT.name}: {len(chosen)} reviews, {positive} positive, {len(vocabulary)} words, {len(content)} bytes")


main()
