"""attn.Tokenizer: a model's tokenizer without its weights."""

import copy
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn
import numpy
import pytest

from golden import testdata

models = testdata / "models"
families = sorted(path.parent.name for path in models.glob("*/tokenizer.json"))
TEXTS = ["A warm film.", "Ünïcode and   spaces, 2 numbers\n", "", "[MASK] é"]


@pytest.mark.parametrize("name", families)
def test_encodings_are_those_of_the_model_but_need_no_weights(name: str, tmp_path: Path) -> None:
    model = attn.TextModel.load(models / name)
    folder = shutil.copytree(models / name, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    tokenizer = attn.Tokenizer.from_pretrained(folder)
    for options in ({"max_length": 6}, {"max_length": 6, "truncation_side": "left", "padding_side": "left"}, {"max_length": 40, "add_special_tokens": False}):
        expected, got = model.tokenize(TEXTS, **options), tokenizer.encode(TEXTS, **options)
        assert numpy.array_equal(got.input_ids, expected.input_ids)
        assert numpy.array_equal(got.attention_mask, expected.attention_mask)
        assert (got.tokens, got.offsets, got.truncated) == (expected.tokens, expected.offsets, expected.truncated)
    pairs = [("A film", "good"), ("", "bad")]
    assert tokenizer.encode(pairs, max_length=9).sequence_ids == model.tokenize(pairs, max_length=9).sequence_ids
    words = [["A", "warm", "film."]]
    assert tokenizer.encode_words(words).words == model.tokenize_words(words).words
    ids = model.tokenize("A warm film.").input_ids[0]
    assert tokenizer.decode(ids) == model.decode(ids)
    assert tokenizer.decode(ids, skip_special_tokens=True) == model.decode(ids, skip_special_tokens=True)
    for id in ids.tolist():
        token = tokenizer.id_to_token(id)
        assert token is not None
        assert token == model.id_to_token(id)
        assert tokenizer.token_to_id(token) == model.token_to_id(token) == id
    assert tokenizer.token_to_id("no such token") is None
    assert tokenizer.id_to_token(tokenizer.vocabulary_size) is None
    assert tokenizer.id_to_token(tokenizer.vocabulary_size - 1) is not None
    assert repr(tokenizer) == f"<attn.Tokenizer: {tokenizer.vocabulary_size} tokens>"


def test_nothing_is_truncated_without_max_length() -> None:
    tokenizer = attn.Tokenizer.from_pretrained(models / "sentiment")
    assert tokenizer.encode(["film " * 1000, "film"]).input_ids.shape == (2, 1002)
    assert tokenizer.encode(["film " * 1000, "film"]).input_ids[1, -1] == tokenizer.pad_id
    with pytest.raises(attn.OutOfRangeError, match="5"):
        tokenizer.encode("a warm film about the sea", max_length=5, truncation=False)


def test_gguf_files_have_a_tokenizer() -> None:
    paths = sorted((testdata / "gguf").glob("tiny-*.gguf"))
    assert paths
    for path in paths:
        assert attn.Tokenizer.from_pretrained(path).encode("The old man").tokens == attn.TextModel.load(path).tokenize("The old man").tokens


@pytest.mark.parametrize("duplicate", [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy])
def test_copies_need_no_files(tmp_path: Path, duplicate: Callable[[Any], Any]) -> None:
    paths = [models / name for name in families] + sorted((testdata / "gguf").glob("tiny-*.gguf"))
    for path in [*paths, _in_a_subfolder(tmp_path)]:
        tokenizer = attn.Tokenizer.from_pretrained(path)
        if path.is_relative_to(tmp_path):
            shutil.rmtree(path)
        again = duplicate(tokenizer)
        expected, got = tokenizer.encode(TEXTS, max_length=9), again.encode(TEXTS, max_length=9)
        assert (got.tokens, got.offsets, got.input_ids.tolist()) == (expected.tokens, expected.offsets, expected.input_ids.tolist())
        assert (repr(again), again.pad_id) == (repr(tokenizer), tokenizer.pad_id)
        assert again.decode(got.input_ids[0]) == tokenizer.decode(got.input_ids[0])


def _in_a_subfolder(folder: Path) -> Path:
    """The files of sentence-transformers may be in a folder below that of modules.json; the class of config.json lowercases."""
    modules = [{"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]
    (folder / "model" / "0_Transformer").mkdir(parents=True)
    (folder / "model" / "modules.json").write_text(json.dumps(modules))
    file = json.loads((models / "sentiment" / "tokenizer.json").read_text())
    file["normalizer"]["lowercase"] = False
    (folder / "model" / "0_Transformer" / "tokenizer.json").write_text(json.dumps(file))
    (folder / "model" / "0_Transformer" / "config.json").write_bytes((models / "sentiment" / "config.json").read_bytes())
    return folder / "model"


def test_the_model_may_be_unknown_or_missing(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((models / "sentiment" / "tokenizer.json").read_bytes())
    expected = attn.Tokenizer.from_pretrained(models / "sentiment").encode(TEXTS).tokens
    assert attn.Tokenizer.from_pretrained(tmp_path).encode(TEXTS).tokens == expected
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "whisper"}))
    assert attn.Tokenizer.from_pretrained(tmp_path).encode(TEXTS).tokens == expected
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(attn.FormatError, match=r"config\.json"):
        attn.Tokenizer.from_pretrained(tmp_path)


def test_the_class_of_the_model_decides_as_in_the_model(tmp_path: Path) -> None:
    """BERT's tokenizers lowercase unless tokenizer_config.json says otherwise, whatever tokenizer.json has."""
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes((models / "sentiment" / name).read_bytes())
    file = json.loads((tmp_path / "tokenizer.json").read_text())
    file["normalizer"]["lowercase"] = False
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    expected = attn.TextModel.load(tmp_path).tokenize("FILM").tokens
    assert attn.Tokenizer.from_pretrained(tmp_path).encode("FILM").tokens == expected == [["[CLS]", "film", "[SEP]"]]
    (tmp_path / "config.json").unlink()
    assert attn.Tokenizer.from_pretrained(tmp_path).encode("FILM").tokens != expected


def test_invalid_files_and_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(attn.MissingFileError, match=r"tokenizer\.json is missing"):
        attn.Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(attn.MissingFileError, match=r"Tokenizer\.from_pretrained: path is owner/none, which is not there"):
        attn.Tokenizer.from_pretrained("owner/none")
    file = json.loads((models / "sentiment" / "tokenizer.json").read_text())
    file["pre_tokenizer"] = {"type": "NoSuchPart"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    with pytest.raises(attn.UnsupportedError, match="NoSuchPart"):
        attn.Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(attn.ArgumentError, match=r"Write Tokenizer\.from_pretrained\(path\)"):
        attn.Tokenizer()
    tokenizer = attn.Tokenizer.from_pretrained(models / "sentiment")
    with pytest.raises(attn.ShapeError, match="decode: ids is rank 2, expected rank 1"):
        tokenizer.decode([[1, 2]])
    with pytest.raises(attn.ArgumentError, match="encode: texts"):
        tokenizer.encode(3)  # type: ignore[arg-type]
