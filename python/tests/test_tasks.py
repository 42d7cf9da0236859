"""Compares entities, masks, answers and ranking with transformers' pipelines (testdata/tasks); offsets are those of a str."""

import json
from functools import cache
from typing import Any

import attn
import numpy
import pytest

from golden import snake, testdata

models = testdata / "models"


@cache
def model_of(name: str) -> attn.TextModel:
    return attn.TextModel.load(models / name, weights="float32")  # as in the pipelines, also if the files are int8


def cases_of(name: str) -> list[dict[str, Any]]:
    return json.loads((testdata / "tasks" / f"{name}.json").read_text())["cases"]


def options_of(case: dict[str, Any]) -> dict[str, Any]:
    return {snake(name): value for name, value in case["options"].items()}


def is_near(got: float, expected: float) -> bool:
    return abs(got - expected) <= 1e-5


def test_entities_are_the_pipelines() -> None:
    count = 0
    for case in cases_of("entities"):
        (got,) = model_of(case["model"]).classify_tokens(case["text"], **options_of(case))
        assert [[each.label, each.start, each.end] for each in got] == [[label, *place] for label, _, *place in case["expected"]], case
        assert all(is_near(each.score, score) for each, (_, score, *_) in zip(got, case["expected"], strict=True)), case
        assert all(each.text == case["text"][each.start : each.end] for each in got), case
        count += len(got)
    assert count > 2000


def test_masks_are_filled_as_by_the_pipeline() -> None:
    for case in cases_of("masks"):
        got = model_of(case["model"]).fill_mask(case["text"], **options_of(case))
        assert [[[each.token, each.id, each.text] for each in of_mask] for of_mask in got] == [
            [[token, id, text] for token, id, _, text in of_mask] for of_mask in case["expected"]
        ], case
        for of_mask, expected in zip(got, case["expected"], strict=True):
            assert all(is_near(each.score, score) for each, (_, _, score, _) in zip(of_mask, expected, strict=True)), case


def test_answers_are_the_pipelines() -> None:
    for case in cases_of("answers"):
        got = model_of(case["model"]).answer(case["question"], case["context"], **options_of(case))
        expected = [row for row in case["expected"] if row[1] > 0]  # the pipeline fills up with answers of score 0
        assert [[each.text, each.start, each.end] for each in got] == [[text, *place] for text, _, *place in expected], case
        assert all(is_near(each.score, score) for each, (_, score, *_) in zip(got, expected, strict=True)), case


def test_ids_become_transformers_texts() -> None:
    for case in cases_of("decoded"):
        model = model_of(case["model"])
        assert model.decode(case["ids"]) == case["expected"][0], case
        assert model.decode(numpy.array(case["ids"], numpy.int64), skip_special_tokens=True) == case["expected"][1], case
    assert model_of("tiny-bert").decode([]) == model_of("tiny-bert").decode([-1, 1 << 30]) == ""


def test_documents_are_ranked_by_the_scores_of_their_pairs() -> None:
    model = attn.TextModel.load(models / "tiny-bert-cls")
    model.fine_tune([("It was good", 1.0), ("It was bad", 0.0)], epochs=1, labels=["relevant"], seed=5)
    query, documents = "Was it good?", ["It was bad.", "The film was good!", "", "A happy person smiles at the child."]
    done: list[tuple[int, int]] = []
    ranked = model.rank(query, documents, batch_size=3, on_progress=lambda *now: done.append(now))
    assert done == [(3, 4), (4, 4)]
    scores = [of_pair[0].score for of_pair in model.classify([(query, document) for document in documents])]
    assert ranked == [attn.RankedDocument(i, scores[i]) for i in sorted(range(4), key=lambda i: -scores[i])]
    assert model.rank(query, iter(documents), top_k=2) == ranked[:2]
    assert model.rank(query, []) == []


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("tiny-mpnet-mean", "embedding"),
        ("tiny-bert", "text-classification"),
        ("tiny-bert-ner", "token-classification"),
        ("tiny-bert-mlm", "fill-mask"),
        ("tiny-bert-qa", "question-answering"),
        ("tiny-bert-choice", "multiple-choice"),
    ],
)
def test_a_model_says_what_its_head_is_for(name: str, task: str) -> None:
    assert model_of(name).task == task


def test_any_batch_and_number_of_threads_has_the_same_entities(threads: int) -> None:
    texts = ["A happy person", "", "The film was not bad, it was good!", "a" * 90, "Überraschend schön 😀"]
    expected = model_of("tiny-bert-ner").classify_tokens(texts, stride=3)
    model = attn.TextModel.load(models / "tiny-bert-ner", threads=threads)
    for batch_size in (1, 2, 4):
        assert model.classify_tokens(texts, stride=3, batch_size=batch_size) == expected


def test_what_is_asked_wrongly_is_said_and_the_model_goes_on() -> None:
    ner, mlm, qa = (model_of(f"tiny-bert-{name}") for name in ("ner", "mlm", "qa"))
    many = "good " * 100
    for error, words, call in (
        (attn.UnsupportedError, "token-classification", lambda: qa.classify_tokens("a")),
        (attn.UnsupportedError, "one label", lambda: model_of("tiny-bert").rank("a", ["b"])),
        (attn.ConfigError, "none, simple, first", lambda: ner.classify_tokens("a", aggregation="last")),
        (attn.ConfigError, "stride", lambda: ner.classify_tokens("a", aggregation="none", stride=1)),
        (attn.OutOfRangeError, "64", lambda: ner.classify_tokens(many, truncation=False)),
        (attn.ArgumentError, r"texts\[1\] is int", lambda: ner.classify_tokens(["a", 7])),
        (attn.ArgumentError, r"documents\[0\] is int", lambda: ner.rank("a", [7])),
        (attn.ArgumentError, "mask", lambda: mlm.fill_mask("good")),
        (attn.ArgumentError, r"targets\[1\]", lambda: mlm.fill_mask("[MASK]", targets=["good", ""])),
        (attn.ArgumentError, "question", lambda: qa.answer("", "a")),
        (attn.OutOfRangeError, "room", lambda: qa.answer(many, "a")),
        (attn.ShapeError, "rank 1", lambda: qa.decode([[1, 2]])),
        (attn.DtypeError, "whole numbers", lambda: qa.decode([0.5])),
        (TypeError, "ignore_labels", lambda: ner.classify_tokens("a", ignore_labels="O")),
    ):
        with pytest.raises(error, match=words):
            call()

    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ner.classify_tokens("a", on_progress=fail)
    assert ner.classify_tokens([]) == []
    assert ner.classify_tokens("") == [[]]
    assert qa.answer("a", " \n ", allow_empty=True)[0].text == ""
