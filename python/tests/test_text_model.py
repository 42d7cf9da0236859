"""Text models, compared with transformers."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attn
import numpy
import pytest

from golden import cases, hash_of, testdata

models = testdata / "models"
families = sorted(path.stem for path in models.glob("tiny-*.safetensors"))


def texts_of(entry: dict[str, Any]) -> list[Any]:
    return [tuple(text) if isinstance(text, list) else text for text in entry["texts"]]


def numbers_of(array: numpy.ndarray) -> numpy.ndarray:
    return array.astype(numpy.int64)


@pytest.mark.parametrize("name", families)
def test_forward_agrees_with_transformers(name: str) -> None:
    model = attn.TextModel.load(models / name)
    count = 0
    for case in cases(f"models/{name}", "text_model"):
        inputs = {each: numbers_of(case.tensor(each)) for each in case["inputs"]}
        options = {{"isCausal": "is_causal", "headMask": "head_mask"}[key]: value for key, value in case.entry.get("forward", {}).items()}
        output = model(**inputs, output_attentions=True, output_hidden_states=True, **options)
        assert numpy.array_equal(output.hidden_states[-1], output.last_hidden_state)
        count += case.check_forward(output)
    assert count >= 2


@pytest.mark.parametrize("name", families)
def test_tasks_on_texts_agree_with_transformers(name: str) -> None:
    model = attn.TextModel.load(models / name)
    for case in cases(f"models/{name}", "text_model"):
        texts = texts_of(case.entry)
        encoding = model.tokenize(texts, max_length=case["options"].get("maxLength"))
        assert encoding.tokens == case["tokens"]
        for what in case["inputs"]:
            assert numpy.array_equal(getattr(encoding, what), case.tensor(what))
        width = encoding.input_ids.shape[1]
        for what in case["expected"]:
            kind, *place = what.split(".")
            if kind == "probabilities":
                scores = [dict(of_text) for of_text in model.classify(texts, max_length=width)]
                for labels, expected in zip(scores, case.tensor("expected.probabilities"), strict=True):
                    assert numpy.abs([labels[label] for label in model.labels] - expected).max() <= 2e-5
            elif kind == "pooled" and isinstance(texts[0], str):
                case.check(what, model.embed(texts, pooling=place[0], normalize=False, max_length=width), factor=2)
            elif kind == "embedding" and isinstance(texts[0], str):
                case.check(what, model.embed(texts, max_length=width), factor=2)


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-modernbert", "tiny-roberta", "tiny-xlm-roberta"])
def test_tokens_agree_with_the_package_tokenizers(name: str) -> None:
    check_tokens(attn.TextModel.load(models / name), json.loads((testdata / "tokenizers" / f"{name}.json").read_text())["cases"])


def test_tokenizer_config_overrides_tokenizer_json(tmp_path: Path) -> None:
    for i, setting in enumerate(json.loads((testdata / "tokenizers" / "settings.json").read_text())["settings"]):
        folder = shutil.copytree(models / setting["checkpoint"], tmp_path / str(i))
        (folder / "tokenizer_config.json").write_text(json.dumps(setting["config"]))
        check_tokens(attn.TextModel.load(folder), setting["cases"])


def utf16_places(text: str) -> list[int]:
    """Returns the number of UTF-16 units, which those files count, before each character."""
    places = [0]
    for c in text:
        places.append(places[-1] + (2 if ord(c) > 0xFFFF else 1))
    return places


def check_tokens(model: attn.TextModel, expected: list[dict[str, Any]]) -> None:
    seen = 0
    for case in expected:
        if len(case["ids"]) > model.max_length:
            continue
        texts = [text if isinstance(text, str) else text["repeat"] * text["times"] for text in (case["text"], case.get("pair", ""))]
        encoding = model.tokenize([texts] if "pair" in case else texts[0], max_length=case.get("maxLength"))
        assert encoding.input_ids[0].tolist() == case["ids"], texts
        assert encoding.tokens[0] == case["tokens"]
        assert encoding.truncated == [case.get("truncated", False)]
        places = [utf16_places(text) for text in texts]
        for offset, sequence, counted in zip(encoding.offsets[0], encoding.sequence_ids[0], case["offsets"], strict=True):
            assert (counted is None) == (offset is None) == (sequence is None)
            if offset is not None:
                assert [places[sequence][place] for place in offset] == counted, texts
        seen += 1
    assert seen > len(expected) // 2


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta", "tiny-xlm-roberta"])
def test_tokenize_words_and_sides_agree_with_transformers(name: str) -> None:
    model = attn.TextModel.load(models / name)
    runs = json.loads((testdata / "tokenizers" / "words.json").read_text())["runs"]
    run = next(run for run in runs if run.get("checkpoint") == name)
    for case in run["cases"]:
        lists = [case["words"], case["pair"]] if "pair" in case else case["words"]
        length = min(case.get("maxLength", model.max_length), model.max_length)
        if len(case["ids"]) > length:
            continue
        side, special = case.get("truncationSide"), case.get("addSpecialTokens", True)
        encoding = model.tokenize_words([lists], max_length=length, truncation_side=side, add_special_tokens=special)
        assert encoding.input_ids[0].tolist() == case["ids"], lists
        assert (encoding.tokens, encoding.words) == ([case["tokens"]], [case["of"]])
        assert encoding.words is not None
        for offset, word, sequence, counted in zip(encoding.offsets[0], encoding.words[0], encoding.sequence_ids[0], case["offsets"], strict=True):
            assert (offset is None) == (counted is None)
            if offset is not None and word is not None:
                places = utf16_places((case["pair"] if sequence == 1 else case["words"])[word])
                assert [places[place] for place in offset] == counted
    for case in run["filled"]:
        encoding = model.tokenize(case["texts"], padding_side=case["paddingSide"])
        assert encoding.input_ids.tolist() == case["ids"]
        assert encoding.attention_mask.tolist() == case["attention_mask"]
        assert encoding.tokens == case["tokens"]
        assert encoding.words is None
    for wrong in ("a", ["a"], [[["a"], ["b"]], ["c"]], [[1]], 3):
        with pytest.raises(attn.ArgumentError):
            model.tokenize_words(wrong)  # type: ignore[arg-type]


def with_another_expression(name: str, folder: Path) -> Path:
    """Writes a checkpoint with an unknown pre-tokenizer pattern, which splits most texts into the same words."""
    shutil.copytree(models / name, folder)
    file = json.loads((folder / "tokenizer.json").read_text())
    split = {"type": "Split", "pattern": {"Regex": r" ?[\p{L}]+| ?[^\s\p{L}]+|\s+"}, "behavior": "Isolated", "invert": False}
    file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, file["pre_tokenizer"] | {"use_regex": False}]}
    (folder / "tokenizer.json").write_text(json.dumps(file))
    return folder


def test_the_package_tokenizers_reads_unknown_parts(tmp_path: Path) -> None:
    texts = ["A film about the sea, 😀 café.", "It is a dull mess.", ""]
    own = attn.TextModel.load(models / "tiny-roberta")
    other = attn.TextModel.load(with_another_expression("tiny-roberta", tmp_path / "model"))
    expected, got = own.tokenize(texts), other.tokenize(texts)
    assert numpy.array_equal(got.input_ids, expected.input_ids)
    assert (got.tokens, got.offsets, got.sequence_ids) == (expected.tokens, expected.offsets, expected.sequence_ids)
    assert other.tokenize("film film", max_length=3).truncated == [True]
    for how in ({"padding_side": "left"}, {"add_special_tokens": False}, {"max_length": 5, "truncation_side": "left"}):
        expected, got = own.tokenize(texts, **how), other.tokenize(texts, **how)
        assert numpy.array_equal(got.input_ids, expected.input_ids)
        assert numpy.array_equal(got.attention_mask, expected.attention_mask)
        assert (got.tokens, got.offsets, got.sequence_ids) == (expected.tokens, expected.offsets, expected.sequence_ids)
    with pytest.raises(attn.UnsupportedError, match="one that attn reads itself"):
        other.tokenize_words([["a"]])
    assert numpy.array_equal(other.embed(texts), own.embed(texts))
    with pytest.raises(attn.UnsupportedError, match="one that attn reads itself"):
        other.decode(got.input_ids[0])


def test_a_missing_package_tokenizers_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = attn.TextModel.load(with_another_expression("tiny-roberta", tmp_path / "model"))
    assert attn.TextModel.load(models / "tiny-roberta").embed("a film").shape == (1, 32)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(attn.UnsupportedError, match="pip install tokenizers"):
        model.embed("a film")
    assert model([[0, 5, 2]]).logits is not None
    assert attn.TextModel.load(models / "tiny-bert").embed("a film").shape == (1, 32)


def test_classify_sorts_labels_by_falling_score(sentiment: attn.TextModel) -> None:
    for of_text in sentiment.classify(["A wonderful film.", "It is a dull mess."]):
        assert all(one.score >= other.score for one, other in pairwise(of_text))
        assert abs(sum(each.score for each in of_text) - 1) < 1e-6
    one = sentiment.classify("A wonderful film.")[0][0]
    assert (one.label, one) == ("positive", attn.LabelScore(*one))


def test_int8_results_are_reproducible() -> None:
    """Compares digests with testdata/int8_digest.txt, as attn_digest and the npm package."""
    expected = dict(reversed(line.split()) for line in (testdata / "int8_digest.txt").read_text().splitlines() if "/" in line)
    seen = 0
    for name in families:
        model = attn.TextModel.load(models / name, weights="int8")
        assert model.weights == "int8"
        for case in cases(f"models/{name}", "text_model"):
            inputs = {each: numbers_of(case.tensor(each)) for each in case["inputs"]}
            output = model(**inputs, output_attentions=True, output_hidden_states=True, trace=True)
            arrays = [output.last_hidden_state, *output.hidden_states, *output.attentions]
            if output.logits is not None:
                arrays.append(output.logits)
            for layer in output.trace.values():
                arrays.extend(layer.values())
            assert hash_of(*arrays) == expected[f"{name}/{case['name']}"]
            seen += 1
    assert seen == sum(1 for line in expected if line.startswith("tiny-"))


def test_vectors_are_reproducible(mini_lm: Path, threads: int) -> None:
    films = [film["text"] for film in json.loads((testdata / "sentiment" / "films.json").read_text())["texts"]]
    # Text 0 is truncated: native-tests/models/int8_test.cpp.
    expected = (models / "all-MiniLM-L6-v2.int8.txt").read_text().split()
    model = attn.TextModel.load(mini_lm, weights="int8", threads=threads)
    assert [hash_of(vector) for vector in model.embed(films[1:19], batch_size=5)] == expected[1:19]


def test_batch_size_and_threads_do_not_change_any_bit(sentiment: attn.TextModel, threads: int) -> None:
    texts = [f"The film was {word} good" for word in ("so", "not so very", "", "really quite")] * 5
    expected = sentiment.embed(texts)
    sentiment.threads = threads
    try:
        for batch_size in (1, 3, 100):
            assert numpy.array_equal(sentiment.embed(texts, batch_size=batch_size), expected)
    finally:
        sentiment.threads = None


def test_texts_may_be_any_iterable_of_str(sentiment: attn.TextModel) -> None:
    expected = sentiment.embed(["a film"])
    for texts in ("a film", ("a film",), iter(["a film"]), numpy.array(["a film"]), dict.fromkeys(["a film"]).keys()):
        assert numpy.array_equal(sentiment.embed(texts), expected)
    assert sentiment.embed([]).shape == (0, expected.shape[1])
    assert sentiment.classify([]) == []
    for texts, words in (
        (b"a film", "texts is bytes"),
        (7, "texts is int"),
        (["a", None], "texts[1] is NoneType"),
        (["\ud800"], "surrogates"),
        ([("a", "b")], "texts[0] is tuple"),
    ):
        with pytest.raises(attn.ArgumentError, match=words.replace("[", "\\[").replace("]", "\\]")):
            sentiment.embed(texts)
    with pytest.raises(attn.ArgumentError, match="a pair of texts"):
        sentiment.classify([("a", "b"), "c"])


def test_offsets_count_characters(sentiment: attn.TextModel) -> None:
    pairs = [("Ünïcode 日本 film", "a 😀 good one"), ("", "b")]
    encoding = sentiment.tokenize(pairs)
    for pair, tokens, offsets, sequences in zip(pairs, encoding.tokens, encoding.offsets, encoding.sequence_ids, strict=True):
        assert len(tokens) == len(offsets) == len(sequences) == encoding.input_ids.shape[1]
        for token, offset, sequence in zip(tokens, offsets, sequences, strict=True):
            assert (offset is None) == (sequence is None) == (token in ("[CLS]", "[SEP]", "[PAD]"))
            if offset is not None and token != "[UNK]":
                assert pair[sequence][slice(*offset)].lower().replace("ü", "u").replace("ï", "i") == token.removeprefix("##")
    assert encoding.truncated == [False, False]
    assert sentiment.tokenize("a " * 500).truncated == [True]


def test_forward_accepts_an_encoding_of_transformers(sentiment: attn.TextModel) -> None:
    encoding = sentiment.tokenize(["not bad", "a wonderful film"])
    expected = sentiment(encoding).logits
    as_numpy = {"input_ids": encoding.input_ids.astype(numpy.int64), "attention_mask": encoding.attention_mask.astype(numpy.int64)}
    assert numpy.array_equal(sentiment(**as_numpy).logits, expected)
    assert numpy.array_equal(sentiment(encoding.input_ids.tolist(), encoding.attention_mask.tolist()).logits, expected)


def test_invalid_ids_raise(sentiment: attn.TextModel) -> None:
    for ids, error in (
        ([[0.5]], attn.DtypeError),
        ([[2**40]], attn.OutOfRangeError),
        ([[-1]], attn.OutOfRangeError),
        ([[10**6]], attn.OutOfRangeError),
        ([1, 2], attn.ShapeError),
        ([["a"]], attn.DtypeError),
        (numpy.zeros((1, 200), int), attn.OutOfRangeError),
    ):
        with pytest.raises(error):
            sentiment(ids)
    with pytest.raises(attn.ShapeError):
        sentiment([[1, 2]], [[1, 1, 1]])


def test_a_patch_and_a_head_mask_change_the_output(sentiment: attn.TextModel) -> None:
    encoding = sentiment.tokenize("not bad")
    plain = sentiment(encoding, output_hidden_states=True, trace=["merged"], trace_layers=[1])
    assert list(plain.trace) == [1]
    same = sentiment(encoding, patch=attn.LayerPatch(1, merged=plain.trace[1]["merged"]))
    assert numpy.array_equal(same.logits, plain.logits)
    other = sentiment(encoding, patch=attn.LayerPatch(1, hidden_state=numpy.zeros_like(plain.hidden_states[1])))
    assert not numpy.array_equal(other.logits, plain.logits)
    heads = numpy.ones((2, 4))
    assert numpy.array_equal(sentiment(encoding, head_mask=heads).logits, plain.logits)
    heads[1, 2] = 0
    assert not numpy.array_equal(sentiment(encoding, head_mask=heads).logits, plain.logits)


@pytest.mark.parametrize(("file", "least"), [("gradients", 11), ("token_gradients", 4), ("deberta_gradients", 4)])
def test_gradients_agree_with_torch(file: str, least: int) -> None:
    count = 0
    for case in cases(f"models/{file}", "model_gradients"):
        model = attn.TextModel.load(models / case["name"])
        inputs = {each: numbers_of(case.tensor(each)) for each in case["inputs"]}
        target = case["options"]["target"]
        got = model.gradients(**inputs, **target, embeddings=True, attentions=True, parameters=True)
        case.check("value", numpy.array([got.value], numpy.float32))
        unused = case.entry.get("unused", [])  # an unused pooler
        expected = {what.removeprefix("parameters.") for what in case["expected"] if what.startswith("parameters.")}
        others = got.parameters.keys() - expected  # a head does not affect the pooled vector
        assert all(name.startswith("cls.") and not got.parameters[name].any() for name in others)
        assert expected - set(unused) <= got.parameters.keys()
        assert len(got.parameters) + len(unused) == len(expected) + len(others)
        for what in case["expected"]:
            kind, _, name = what.partition(".")
            if kind == "embeddings":
                case.check(what, got.embeddings)
            elif kind == "attentions":
                case.check(what, got.attentions[int(name)])
            elif kind == "parameters" and name not in unused:
                case.check(what, got.parameters[name])
        count += 1
    assert count >= least


def test_attributions_agree_with_captum() -> None:
    count = 0
    for case in cases("models/attribution", "attribution"):
        model = attn.TextModel.load(models / case["checkpoint"])
        for what in case["expected"]:
            method, steps = (what[:-2], 8) if what.endswith("_8") else (what, 50)
            got = model.attribute(case["text"], method=method, target=case["options"]["target"], steps=steps)
            assert got.tokens == case["tokens"]
            case.check(what, got.scores, factor=4)
            assert (got.delta is not None) == (method == "integrated_gradients")
            count += 1
    assert count >= 30


def test_a_state_dict_is_loaded_back() -> None:
    model = attn.TextModel.load(models / "tiny-bert")
    state = model.state_dict()
    assert model.parameter_shapes() == {name: array.shape for name, array in state.items()}
    before = model.classify("a good film")
    name = next(name for name in state if name.endswith("classifier.bias"))
    model.load_state_dict({name: state[name] + numpy.arange(len(state[name]))}, strict=False)
    assert model.classify("a good film") != before
    model.load_state_dict(state)
    assert model.classify("a good film") == before
    with pytest.raises(attn.MismatchError):
        model.load_state_dict({name: state[name]})


@pytest.mark.parametrize(("weights", "is_equal"), [("float32", True), ("float16", False), ("int8", False)])
def test_save_pretrained_is_loaded_back(weights: Any, is_equal: bool, tmp_path: Path) -> None:
    model = attn.TextModel.load(models / "tiny-bert")
    model.load_state_dict({name: array + 1e-5 for name, array in model.state_dict().items()})  # the file has float16
    model.save_pretrained(tmp_path / "saved", weights=weights)
    again = attn.TextModel.load(tmp_path / "saved")
    assert again.weights == ("int8" if weights == "int8" else "float32")
    one, other = model.state_dict(), again.state_dict()
    assert all(numpy.array_equal(array, other[name]) for name, array in one.items()) == is_equal
    assert all(numpy.abs(array - other[name]).max() < 0.1 for name, array in one.items())


def test_the_seed_determines_fine_tuning(threads: int) -> None:
    examples = [("a good film", "good"), ("it was bad", "bad"), (("was it", "good?"), "good"), ("bad", "bad")]
    states = []
    for count in (1, threads):
        model = attn.TextModel.load(models / "tiny-bert", threads=count)
        seen: list[attn.FineTuneProgress] = []
        result = model.fine_tune(iter(examples), epochs=3, batch_size=2, labels=["bad", "good"], seed=3, validation=0.25, on_progress=seen.append)
        assert [(each.epoch, each.step, each.steps) for each in seen] == [(1, 1, 6), (1, 2, 6), (2, 3, 6), (2, 4, 6), (3, 5, 6), (3, 6, 6)]
        assert seen[-1].validation_accuracy == result.validation_accuracy
        assert seen[0].validation_loss is None
        assert model.labels == ["bad", "good"]
        states.append(model.state_dict())
    assert all(numpy.array_equal(array, states[1][name]) for name, array in states[0].items())


def test_on_progress_can_end_fine_tuning() -> None:
    model = attn.TextModel.load(models / "tiny-bert")
    steps = []

    def stop(progress: attn.FineTuneProgress) -> bool:
        steps.append(progress.step)
        return progress.step < 2

    model.fine_tune([("a", 0), ("b", 1)] * 8, batch_size=2, on_progress=stop)
    assert steps == [1, 2]

    def fail(_: attn.FineTuneProgress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model.fine_tune([("a", 0)], on_progress=fail)


@pytest.mark.parametrize("example", [7, "a", ("a",), (7, 0), (("a", None), 0), ("a", None)])
def test_invalid_examples_raise_argument_error(example: Any, sentiment: attn.TextModel) -> None:
    with pytest.raises(attn.ArgumentError, match=r"examples\[1\] is .*, expected \(text, label\) or"):
        sentiment.fine_tune([("a", 0), example])


def test_a_callback_may_read_a_model_but_not_change_it() -> None:
    model = attn.TextModel.load(models / "tiny-bert")
    seen: list[object] = []

    def call(what: Callable[[], object]) -> None:
        try:
            seen.append(what())
        except attn.AttnError as error:
            seen.append(error.code)

    def inside(*_: object) -> None:
        call(lambda: model.embed(["b"]).shape)
        call(lambda: model.load_state_dict({}, strict=False))

    model.embed(["a"], on_progress=inside)
    assert seen == [(1, 32), "BUSY"]
    seen.clear()
    model.fine_tune([("a", 0)], epochs=1, on_progress=inside)
    assert seen == ["BUSY", "BUSY"]
    assert model.embed(["b"]).shape == (1, 32)


def test_on_progress_counts_texts(sentiment: attn.TextModel) -> None:
    done: list[tuple[int, int]] = []
    sentiment.embed(["a"] * 10, batch_size=4, on_progress=lambda *now: done.append(now))
    sentiment.classify(["a"] * 3, batch_size=2, on_progress=lambda *now: done.append(now))
    assert done == [(4, 10), (8, 10), (10, 10), (2, 3), (3, 3)]

    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sentiment.embed(["a"], on_progress=fail)


def test_tokens_and_ids_are_converted(sentiment: attn.TextModel) -> None:
    id = sentiment.token_to_id("film")
    assert id is not None
    assert sentiment.id_to_token(id) == "film"
    assert sentiment.token_to_id("no such token") is None
    assert sentiment.id_to_token(-1) is None


def test_invalid_files_raise(tmp_path: Path) -> None:
    with pytest.raises(attn.FormatError, match="is missing"):
        attn.TextModel.load(tmp_path)
    shutil.copytree(models / "tiny-bert", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(attn.FormatError) as caught:
        attn.TextModel.load(str(tmp_path / "model"))
    assert caught.value.code == "FORMAT"
    with pytest.raises(attn.ConfigError, match="float32, int8"):
        attn.TextModel.load(tmp_path / "model", weights="int4")


@pytest.mark.parametrize(("path", "error"), [("a\0b", ValueError), (5, TypeError)])
def test_invalid_paths_raise_the_errors_of_open(path: object, error: type[Exception], sentiment: attn.TextModel) -> None:
    for call in (attn.TextModel.load, attn.read_safetensors, sentiment.save_pretrained):
        with pytest.raises(error, match="null byte|expected a str, bytes or os.PathLike"):
            call(path)  # type: ignore[arg-type]


def test_a_path_may_be_bytes_or_not_utf_8(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"\xff")
    shutil.copytree(testdata / "models" / "tiny-bert", os.fsdecode(folder))
    for path in (folder, os.fsdecode(folder), Path(os.fsdecode(folder))):
        assert attn.TextModel.load(path).max_length == 64  # type: ignore[arg-type]


def test_attribute_takes_several_texts(sentiment: attn.TextModel) -> None:
    texts = ["not bad at all", "a dull film"]
    for one, other in zip(sentiment.attribute(texts, target="negative", steps=5), texts, strict=True):
        expected = sentiment.attribute(other, target="negative", steps=5)
        assert (one.tokens, one.offsets, one.delta) == (expected.tokens, expected.offsets, expected.delta)
        assert numpy.array_equal(one.scores, expected.scores)
    assert sentiment.attribute([]) == []
    for wrong in (3, [3], [("a", "b")], {"a": 1}):
        with pytest.raises(attn.ArgumentError, match=r"attribute: text(\[0\])? is "):
            sentiment.attribute(wrong)


def test_get_parameter_is_one_of_the_state(sentiment: attn.TextModel) -> None:
    for name, array in sentiment.state_dict().items():
        assert numpy.array_equal(sentiment.get_parameter(name), array)
    with pytest.raises(attn.OutOfRangeError, match="get_parameter: name is none, expected a name in parameter_shapes"):
        sentiment.get_parameter("none")


def test_negative_layers_count_from_the_end(sentiment: attn.TextModel) -> None:
    inputs, other = sentiment.tokenize("a good film"), sentiment.tokenize("a dull film")
    states = sentiment(inputs, output_hidden_states=True).hidden_states
    assert states is not None
    patched = [sentiment(other, patch=attn.LayerPatch(layer, hidden_state=states[1])).logits for layer in (1, -1)]
    assert numpy.array_equal(patched[0], patched[1])
    assert not numpy.array_equal(patched[0], sentiment(other).logits)
    trace = sentiment(inputs, trace=["q"], trace_layers=[-2]).trace
    assert trace is not None
    assert list(trace) == [0]
    with pytest.raises(attn.OutOfRangeError, match="-3"):
        sentiment(other, patch=attn.LayerPatch(-3, hidden_state=states[1]))
    with pytest.raises(attn.OutOfRangeError):
        sentiment(inputs, trace=["q"], trace_layers=[-3])


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta", "tiny-albert", "tiny-deberta", "tiny-modernbert", "tiny-gpt2", "tiny-llama", "tiny-gemma-3"])
def test_given_embeddings_replace_rows_of_the_word_embeddings(name: str, weights: Any) -> None:
    model = attn.TextModel.load(models / name, weights=weights)
    ids = [[5, 6, 7, 8], [9, 10, 5, 6]]
    rows = model.word_embeddings(ids)
    expected = model(ids)
    assert numpy.array_equal(model(inputs_embeds=rows).last_hidden_state, expected.last_hidden_state)
    mixed = rows.copy()
    mixed[0, 1] = (rows[0, 1] + rows[1, 1]) / 2  # a word halfway between two
    assert not numpy.allclose(model(inputs_embeds=mixed).last_hidden_state[0], expected.last_hidden_state[0])
    assert numpy.array_equal(model(inputs_embeds=mixed).last_hidden_state[1], expected.last_hidden_state[1])
    with pytest.raises(attn.ShapeError, match=r"inputs_embeds has shape \(2,4,\d+\), expected \(2,4,\d+\)"):
        model(inputs_embeds=rows[..., 1:])
    with pytest.raises(attn.ShapeError, match=r"inputs_embeds has shape \(4,\d+\), expected \(B,L,W\)"):
        model(inputs_embeds=rows[0])
    with pytest.raises(attn.ArgumentError, match="inputs_embeds is given with input_ids, expected a call without input_ids"):
        model(ids, inputs_embeds=rows)
    with pytest.raises(attn.ArgumentError, match="input_ids is missing"):
        model()


def test_given_embeddings_follow_padding_and_a_cache() -> None:
    model = attn.TextModel.load(models / "tiny-llama")
    ids, mask = [[0, 0, 5, 6, 7], [8, 9, 10, 11, 12]], [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]
    rows = model.word_embeddings(ids)
    expected = model(ids, mask).last_hidden_state
    assert numpy.array_equal(model(inputs_embeds=rows, attention_mask=mask).last_hidden_state, expected)
    cache = model.create_cache(batch_size=2, max_length=5)
    whole = model([[5, 6, 7, 8, 9]] * 2).last_hidden_state
    model(inputs_embeds=model.word_embeddings([[5, 6, 7, 8]] * 2), cache=cache)
    assert numpy.array_equal(model(inputs_embeds=model.word_embeddings([[9]] * 2), cache=cache).last_hidden_state, whole[:, 4:])
