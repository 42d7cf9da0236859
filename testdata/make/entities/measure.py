"""Measures the stored entity model on test.txt and on sentences labelled by spaCy that were not used for training, and writes its README.md."""

import json
import re
import string
import sys
from pathlib import Path

import torch
from transformers import pipeline

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "testdata" / "make" / "corpora"))
from stored import stored  # noqa: E402
from templates import SLOT, TEMPLATES  # noqa: E402

FOLDER = ROOT / "testdata" / "models" / "entities"
TYPES = ["PER", "ORG", "LOC", "DATE", "MISC"]


def tests():
    """(text, {(start, end, type)}) of test.txt, where [Anna|PER] marks a name."""
    for line in (Path(__file__).parent / "test.txt").read_text("utf-8").splitlines():
        text, spans, at = "", set(), 0
        for match in re.finditer(r"\[([^|\]]+)\|([A-Z]+)\]", line):
            text += line[at : match.start()]
            spans.add((len(text), len(text) + len(match[1]), match[2]))
            text += match[1]
            at = match.end()
        yield text + line[at:], spans


def f1(pairs, kind=None):
    """F1 in percent of whole names with the right type."""
    pick = lambda spans: {each for each in spans if kind in (None, each[2])}  # noqa: E731
    right = sum(len(pick(found) & pick(wanted)) for found, wanted in pairs)
    count = sum(len(pick(found)) + len(pick(wanted)) for found, wanted in pairs)
    return 200 * right / max(1, count)


def judged(run, cases, shows=False):
    pairs, cases = [], sorted(cases, key=lambda case: len(case[0]))
    for (text, wanted), each_found in zip(cases, run([text for text, _ in cases], batch_size=32)):
        found = {(each["start"], each["end"], each["entity_group"]) for each in each_found}
        pairs.append((found, set(wanted)))
        if shows and found != wanted:
            print(
                text,
                *(f"-[{text[a:b]}|{kind}]" for a, b, kind in sorted(wanted - found)),
                *(f"+[{text[a:b]}|{kind}]" for a, b, kind in sorted(found - wanted)),
            )
    return pairs


def unlike_templates(cases):
    """Sentences that no template can produce with any content of its slots."""
    wordings = ("(?:.+)".join(re.escape(part) for part in SLOT.split(each)[::2]) for each in TEMPLATES if len(SLOT.sub("", each)) > 6)
    made = re.compile("|".join(wordings))
    return [case for case in cases if not made.fullmatch(case[0])]


def main():
    torch.set_num_threads(1)
    tokenizer, model = stored(FOLDER, "AutoModelForTokenClassification")
    run = pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="first")
    cases = list(tests())
    pairs = judged(run, cases, shows=True)
    simple = judged(pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple"), cases)
    other = unlike_templates(cases)
    unlike = f1(judged(run, other))
    print(f"{len(other)} sentences that no template could have made: {unlike:.1f}")
    held_out = [(text, {tuple(each) for each in spans}) for text, spans in json.loads((ROOT / "build/entities/held_out.json").read_text("utf-8"))]
    real = judged(run, held_out)
    figures = {"all": f1(pairs), **{kind: f1(pairs, kind) for kind in TYPES}}
    three = f1([({e for e in a if e[2] in ("PER", "ORG", "LOC")}, {e for e in b if e[2] in ("PER", "ORG", "LOC")}) for a, b in pairs])
    print({name: round(value, 1) for name, value in figures.items()}, "PER, ORG, LOC", round(three, 1), "simple", round(f1(simple), 1))
    print("held out, marked by spaCy", len(held_out), round(f1(real), 1), {kind: round(f1(real, kind), 1) for kind in TYPES})
    whole = sum(found == wanted for found, wanted in pairs)
    names = sum(len(wanted) for _, wanted in cases)
    card = string.Template((Path(__file__).parent / "card.md").read_text("utf-8")).substitute(
        {kind.lower(): f"{value:.1f}" for kind, value in figures.items()},
        three=f"{three:.1f}",
        simple=f"{f1(simple):.1f}",
        sentences=len(cases),
        other=len(other),
        unlike=f"{unlike:.1f}",
        names=names,
        whole=whole,
        held_out=len(held_out),
        real=f"{f1(real):.1f}",
        parameters=f"{sum(p.numel() for p in model.parameters()):,}".replace(",", " "),
        pieces=len(tokenizer),
    )
    (FOLDER / "README.md").write_text(card, "utf-8")
    print(f"{sum(path.stat().st_size for path in FOLDER.iterdir())} bytes in {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
