"""Tasks, compared with transformers' pipelines (testdata/tasks)."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import attn
import numpy
import pytest

from golden import snake, testdata

models = testdata / "models"


@cache
def model_of(name: str) -> attn.TextModel:
    return attn.TextModel.load(models / name, weights="float32")  # as the pipelines compute, also for int8 files


def cases_of(name: str) -> list[dict[str, Any]]:
    return json.loads((testdata / "tasks" / f"{name}.json").read_text())["cases"]


def options_of(case: dict[str, Any]) -> dict[str, Any]:
    return {snake(name): value for name, value in case["options"].items()}


def is_near(got: float, expected: float) -> bool:
    return abs(got - expected) <= 1e-5


def test_entities_agree_with_the_pipeline() -> None:
    count = 0
    for case in cases_of("entities"):
        (got,) = model_of(case["model"]).classify_tokens(case["text"], **options_of(case))
        assert [[each.label, each.start, each.end] for each in got] == [[label, *place] for label, _, *place in case["expected"]], case
        assert all(is_near(each.score, score) for each, (_, score, *_) in zip(got, case["expected"], strict=True)), case
        assert all(each.text == case["text"][each.start : each.end] for each in got), case
        count += len(got)
    assert count > 2000


def test_filled_masks_agree_with_the_pipeline() -> None:
    for case in cases_of("masks"):
        got = model_of(case["model"]).fill_mask(case["text"], **options_of(case))
        assert [[[each.token, each.id, each.text] for each in of_mask] for of_mask in got] == [
            [[token, id, text] for token, id, _, text in of_mask] for of_mask in case["expected"]
        ], case
        for of_mask, expected in zip(got, case["expected"], strict=True):
            assert all(is_near(each.score, score) for each, (_, _, score, _) in zip(of_mask, expected, strict=True)), case


def test_answers_agree_with_the_pipeline() -> None:
    for case in cases_of("answers"):
        got = model_of(case["model"]).answer(case["question"], case["context"], **options_of(case))
        expected = [row for row in case["expected"] if row[1] > 0]  # the pipeline fills up with answers of score 0
        assert [[each.text, each.start, each.end] for each in got] == [[text, *place] for text, _, *place in expected], case
        assert all(is_near(each.score, score) for each, (_, score, *_) in zip(got, expected, strict=True)), case


def test_decode_agrees_with_transformers() -> None:
    for case in cases_of("decoded"):
        model = model_of(case["model"])
        assert model.decode(case["ids"]) == case["expected"][0], case
        assert model.decode(numpy.array(case["ids"], numpy.int64), skip_special_tokens=True) == case["expected"][1], case
    assert model_of("tiny-bert").decode([]) == model_of("tiny-bert").decode([-1, 1 << 30]) == ""


def test_rank_sorts_by_the_scores_of_classify() -> None:
    model = attn.TextModel.load(models / "tiny-bert-cls")
    model.fine_tune([("It was good", 1.0), ("It was bad", 0.0)], epochs=1, labels=["relevant"], seed=5)
    query, documents = "Was it good?", ["It was bad.", "The film was good!", "", "A happy person smiles at the child."]
    done: list[tuple[int, int]] = []
    ranked = model.rank(query, documents, batch_size=3, on_progress=lambda *now: done.append(now))
    assert done == [(3, 4), (4, 4)]
    scores = [of_pair[0].score for of_pair in model.classify([(query, document) for document in documents])]
    assert ranked == [attn.RankedDocument(i, scores[i]) for i in sorted(range(4), key=lambda i: -scores[i])]
    assert model.rank(query, iter(documents), top_k=2) == ranked[:2]
    truncated: list[bool] = []
    model.rank(query, documents, max_length=9, truncated=truncated)
    assert truncated == model.tokenize([(query, document) for document in documents], max_length=9).truncated
    assert set(truncated) == {False, True}
    assert model.rank(query, []) == []


def test_rank_puts_a_prompt_before_the_query(tmp_path: Path) -> None:
    model = attn.TextModel.load(models / "tiny-bert-cls")
    model.fine_tune([("It was good", 1.0), ("It was bad", 0.0)], epochs=1, labels=["relevant"], seed=5)
    model.save_pretrained(tmp_path)
    (tmp_path / "modules.json").write_text("[]")
    prompts = {"prompts": {"ask": "Was it ", "say": "It was "}, "default_prompt_name": "ask"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    model = attn.TextModel.load(tmp_path)
    documents = ["It was bad.", "The film was good!"]
    for options, prompt in (
        ({}, "Was it "),
        ({"prompt": ""}, ""),
        ({"prompt_name": "say"}, "It was "),
        ({"prompt": "So ", "add_special_tokens": False, "truncation_side": "left"}, "So "),
    ):
        others = {name: value for name, value in options.items() if "prompt" not in name}
        expected = [of_pair[0].score for of_pair in model.classify([(prompt + "good?", each) for each in documents], **others)]
        ranked = model.rank("good?", documents, **options)
        assert [each.score for each in ranked] == sorted(expected, reverse=True)
    with pytest.raises(attn.ConfigError, match="prompt_name"):
        model.rank("good?", documents, prompt_name="none")


def test_classify_returns_the_top_k_labels() -> None:
    model = model_of("tiny-bert")
    every = model.classify(["It was good", "a"])
    for top_k in range(1, 5):
        assert model.classify(["It was good", "a"], top_k=top_k) == [of_text[:top_k] for of_text in every]
    with pytest.raises(attn.ConfigError, match="top_k"):
        model.classify("a", top_k=0)


def test_special_tokens_and_the_truncation_side_affect_every_task() -> None:
    text = "It was good, it was bad, it was good."
    vectors, labels, ner = (model_of(name) for name in ("tiny-mpnet-mean", "tiny-bert", "tiny-bert-ner"))
    for call in (
        lambda **options: vectors.embed(text, **options).tolist(),
        lambda **options: labels.classify(text, **options),
        lambda **options: ner.classify_tokens(text, aggregation="none", ignore_labels=[], **options),
    ):
        right = call(max_length=6)
        assert call(max_length=6, truncation_side="right", add_special_tokens=True) == right
        assert call(max_length=6, truncation_side="left") != right
        assert call(max_length=6, add_special_tokens=False) != right
        with pytest.raises(attn.ConfigError, match="truncation_side"):
            call(truncation_side="middle")


def test_truncated_texts_are_reported_in_a_list() -> None:
    model, ner = model_of("tiny-bert"), model_of("tiny-bert-ner")
    texts = ["good", "It was good, it was bad, it was good."]
    for call in (
        lambda **options: model.embed(texts, max_length=6, **options),
        lambda **options: model.classify(texts, max_length=6, **options),
        lambda **options: model.classify([("a", text) for text in texts], max_length=6, **options),
        lambda **options: ner.classify_tokens(texts, max_length=6, **options),
    ):
        found = [True] * 5
        call(truncated=found)
        assert found == [False, True]
        with pytest.raises(attn.ArgumentError, match="truncated is tuple, expected a list"):
            call(truncated=())
    ner.classify_tokens(texts, max_length=6, stride=1, truncated=found)
    assert found == [False, False]
    model.embed([], truncated=found)
    assert found == []


def test_lists_of_texts_give_the_results_of_their_texts() -> None:
    mlm, qa = model_of("tiny-bert-mlm"), model_of("tiny-bert-qa")
    texts = ["A [MASK] person.", "[MASK] [MASK]", "The film was [MASK]!"]
    done: list[tuple[int, int]] = []
    filled = mlm.fill_mask(iter(texts), top_k=2, batch_size=2, on_progress=lambda *now: done.append(now))
    assert filled == [mlm.fill_mask(text, top_k=2) for text in texts]
    assert done[-1] == (3, 3)
    assert mlm.mask_token == "[MASK]"
    assert mlm.fill_mask([]) == []
    questions, contexts = ["Who smiles?", "Who?"], ["A happy person smiles.", "Über 😀 the child smiles at the film."]
    assert qa.answer(questions, contexts, batch_size=1) == [qa.answer(*pair) for pair in zip(questions, contexts, strict=True)]
    assert qa.answer(questions, contexts[1]) == [qa.answer(question, contexts[1]) for question in questions]
    assert qa.answer(questions[0], tuple(contexts), top_k=3) == [qa.answer(questions[0], context, top_k=3) for context in contexts]
    assert qa.answer([], contexts[0]) == []
    assert qa.answer(questions[:1], contexts[0])[0] == qa.answer(questions[0], contexts[0])
    long = "The film was good! " * 9 + contexts[0]
    assert qa.answer(questions[0], long, max_length=20, stride=4) == qa.answer([questions[0]], [long], max_length=20, stride=4)[0]
    for error, words, call in (
        (attn.ArgumentError, "context is a list of 2, expected 1 text", lambda: qa.answer(questions[:1], contexts)),
        (attn.ArgumentError, r"question\[1\] is int", lambda: qa.answer(["a", 7], "b")),
        (attn.ArgumentError, r"text\[0\] is NoneType", lambda: mlm.fill_mask([None])),
        (attn.ArgumentError, "question is int", lambda: qa.answer(7, "b")),
        (attn.ConfigError, "max_length", lambda: qa.answer("a", "b", max_length=0)),
        (attn.ConfigError, "batch_size", lambda: mlm.fill_mask(texts, batch_size=0)),
    ):
        with pytest.raises(error, match=words):
            call()


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
def test_task_names_the_head(name: str, task: str) -> None:
    assert model_of(name).task == task


def test_batch_size_and_threads_do_not_change_entities(threads: int) -> None:
    texts = ["A happy person", "", "The film was not bad, it was good!", "a" * 90, "Überraschend schön 😀"]
    expected = model_of("tiny-bert-ner").classify_tokens(texts, stride=3)
    model = attn.TextModel.load(models / "tiny-bert-ner", threads=threads)
    for batch_size in (1, 2, 4):
        assert model.classify_tokens(texts, stride=3, batch_size=batch_size) == expected


def test_invalid_task_arguments_raise_and_the_model_stays_usable() -> None:
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
        (attn.DtypeError, "is text, expected whole numbers", lambda: qa.decode(["a", "b"])),
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
