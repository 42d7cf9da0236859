"""testdata/tasks: results of transformers' pipelines for texts, with the checkpoints of models.py: entities, masks.

Offsets are in code points, as in Python. answers.py makes the answers, because transformers 5 has no pipeline for them."""

import json
import re
import sys

import torch
import transformers
from transformers import pipeline

import common
import models
import tiny_tokenizers
import tokenizer_cases

sys.path.append(str(common.ROOT / "testdata" / "make" / "corpora"))
from stored import stored  # noqa: E402

FOLDER = common.TESTDATA / "tasks"
AGGREGATIONS = ("none", "first", "average", "max")
LENGTH = 64
SMALL = ("entities", "masks")


def lines(count, most):
    """Texts of the tokenizer cases, then pairs of the lines on which the tokenizers were trained; at most `most` characters each."""
    hard = [text for text in (*tokenizer_cases.TEXTS, *tokenizer_cases.random_texts()) if len(text) <= most]
    plain = [f"{a} {b}" for i, a in enumerate(tiny_tokenizers.LINES) for b in tiny_tokenizers.LINES[i % 3 :: 11]]
    return [*hard[: count // 2], *(text for text in plain if len(text) <= most)][:count]


def plain(name):
    """The hand-written sentences on which the small models are measured."""
    rows = (common.ROOT / "testdata" / "make" / name / "test.txt").read_text("utf-8").splitlines()
    return [re.sub(r"\[([^|\]]+)\|[A-Z]+\]", r"\1", row.partition(" | ")[0]) for row in rows]


def everyday():
    """Texts for the trained small models: hand-written sentences, some joined in pairs, some in lowercase or uppercase."""
    sentences = plain("entities")
    pairs = [f"{a} {b}" for a, b in zip(sentences[::2], sentences[1::2])]
    return [*sentences, *pairs, *(text.lower() for text in sentences[::10]), *(text.upper() for text in sentences[5::20])]


def loaded(name, kind):
    folder = models.FOLDER / name
    if name in SMALL:
        tokenizer, model = stored(folder, kind)
        return tokenizer, model
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = LENGTH
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return tokenizer, model


def write(name, cases):
    FOLDER.mkdir(exist_ok=True)
    head = json.dumps({"transformers": transformers.__version__})[1:-1]
    rows = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    path = FOLDER / name
    path.write_text(f'{{{head}, "cases": [\n{rows}\n]}}\n', "utf-8")
    assert path.stat().st_size < 600_000, path.stat().st_size
    print(f"{path.relative_to(common.ROOT)}: {len(cases)} cases, {path.stat().st_size} bytes")


def entities():
    for name in ("tiny-bert-ner", "tiny-xlm-roberta-ner", "entities"):
        tokenizer, model = loaded(name, "AutoModelForTokenClassification")
        run = pipeline("token-classification", model=model, tokenizer=tokenizer)
        texts = [*everyday(), *lines(60, 120)] if name == "entities" else lines(120, 400)
        texts += [" ".join(texts[i : i + 8]) for i in range(0, 40, 8)]
        for i, text in enumerate(texts):
            for aggregation in ("simple", AGGREGATIONS[i % 4]):
                options = {"aggregation": aggregation}
                if aggregation != "none" and i % 3 == 0:
                    options["stride"] = (0, 5, 17)[i // 3 % 3]
                if i % 7 == 6:
                    options["ignoreLabels"] = ["PER", "B-LOC"]
                given = {"aggregation_strategy": aggregation, "stride": options.get("stride"), "ignore_labels": options.get("ignoreLabels")}
                found = run(text, **{key: value for key, value in given.items() if value is not None})
                rows = [[each.get("entity_group", each.get("entity")), round(float(each["score"]), 7), each["start"], each["end"]] for each in found]
                yield {"model": name, "text": text, "options": options, "expected": rows}


def masks():
    for name in ("tiny-bert-mlm", "tiny-distilbert-mlm", "tiny-roberta-mlm", "tiny-mpnet-mlm", "tiny-modernbert-mlm", "masks"):
        tokenizer, model = loaded(name, "AutoModelForMaskedLM")
        run = pipeline("fill-mask", model=model, tokenizer=tokenizer)
        for i, text in enumerate([*plain("masks"), *everyday()] if name == "masks" else lines(48, 80)):
            words = text.split(" ")
            if name != "masks" or tokenizer.mask_token not in text:
                words[i % len(words)] = tokenizer.mask_token
            if i % 5 == 4:
                words.append(tokenizer.mask_token)
            text = " ".join(words)
            if len(tokenizer(text)["input_ids"]) > LENGTH:
                continue
            options = {}
            if i % 4 == 1:
                options["topK"] = 2
            if i % 6 == 2:
                options["targets"] = ["good", "a", " is", "happiness"]
            given = {"top_k": options.get("topK"), "targets": options.get("targets")}
            found = run(text, **{key: value for key, value in given.items() if value is not None})
            found = found if isinstance(found[0], list) else [found]
            rows = [[[each["token_str"], each["token"], round(each["score"], 8), each["sequence"]] for each in mask] for mask in found]
            yield {"model": name, "text": text, "options": options, "expected": rows}


def decoded():
    """Texts decoded from ids, with and without special tokens."""
    for name in ("tiny-bert", "tiny-distilbert", "tiny-roberta", "tiny-xlm-roberta", "tiny-mpnet", "tiny-modernbert"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(models.FOLDER / name)
        for text in lines(40, 120):
            ids = tokenizer(text)["input_ids"]
            yield {"model": name, "ids": ids, "expected": [tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=True)]}
            part = ids[2::3]
            yield {"model": name, "ids": part, "expected": [tokenizer.decode(part), tokenizer.decode(part, skip_special_tokens=True)]}


def generate():
    write("entities.json", list(entities()))
    write("masks.json", list(masks()))
    write("decoded.json", list(decoded()))


if __name__ == "__main__":
    generate()
