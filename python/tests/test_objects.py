"""What objects show of themselves, and their copies: pickle, copy, worker processes."""

import copy
import multiprocessing
import pickle
import re
import tomllib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import attn
import numpy
import pytest

from golden import testdata

models = testdata / "models"
families = sorted(path.name for path in models.glob("tiny-*") if path.is_dir())
x = numpy.random.default_rng(3).standard_normal((2, 3, 16), numpy.float32)
COPIES: list[Callable[[Any], Any]] = [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy]


def test_the_version_is_that_of_the_sources() -> None:
    words = (testdata.parent / "CMakeLists.txt").read_text()
    found = re.search(tomllib.loads((testdata.parent / "pyproject.toml").read_text())["tool"]["dynamic-metadata"][0]["regex"], words)
    assert found is not None
    assert attn.__version__ == found["value"]


def test_objects_say_what_they_are(sentiment: attn.TextModel) -> None:
    assert repr(sentiment) == "<attn.TextModel: bert, text-classification, 2 layers, 4 heads, embeddings of 64, float32>"
    assert repr(attn.Mask.block([[True, False]])) == "<attn.Mask: block, (1, 2)>"
    assert repr(attn.LayerPatch(1, hidden_state=x)) == "<attn.LayerPatch: layer 1, hidden_state (2, 3, 16)>"
    assert repr(attn.TextModel.load(models / "tiny-gpt2").create_cache(max_length=8)) == "<attn.KeyValueCache: 0 of 8 tokens>"
    layer = attn.MultiHeadAttention(16, num_heads=4, bias=False)
    assert repr(layer) == "attn.MultiHeadAttention(embed_dim=16, num_heads=4, bias=False)"
    assert repr(eval(repr(layer))) == repr(layer)
    layer.quantize()
    assert repr(layer) == "<attn.MultiHeadAttention(embed_dim=16, num_heads=4, bias=False), int8>"
    assert repr(attn.TransformerEncoder(16, 4, 2)) == "attn.TransformerEncoder(d_model=16, nhead=4, num_layers=2)"


def test_results_show_shapes_and_are_mappings(sentiment: attn.TextModel) -> None:
    result = attn.scaled_dot_product_attention(x, x, x, need_weights=True)
    assert repr(result) == "AttentionResult(output=float32(2, 3, 16), weights=float32(2, 3, 3))"
    assert list(result) == result.keys() == ["output", "weights"]
    assert result["output"] is dict(result)["output"] is result.output
    for name in ("trace", "no such part"):
        with pytest.raises(KeyError):
            result[name]
    encoding = sentiment.tokenize(["a film", "a film about the sea"])
    assert encoding.keys() == ["input_ids", "attention_mask", "token_type_ids"]
    output = sentiment(**encoding, output_attentions=True)
    assert numpy.array_equal(output.logits, sentiment(encoding).logits)
    assert repr(output) == "TextModelOutput(last_hidden_state=float32(2, 7, 64), logits=float32(2, 2), attentions=[2 of float32(2, 4, 7, 7)])"
    assert len(repr(sentiment.tokenize(["a film " * 50] * 100))) < 1000


@pytest.mark.parametrize("duplicate", COPIES)
@pytest.mark.parametrize("name", families)
def test_a_copy_of_a_model_has_the_same_bits(name: str, duplicate: Callable[[Any], Any]) -> None:
    model = attn.TextModel.load(models / name, threads=2)
    again = duplicate(model)
    assert (repr(again), again.task, again.labels, again.max_length, again.threads) == (repr(model), model.task, model.labels, model.max_length, 2)
    assert again.config["model_type"] == model.config["model_type"]
    state, copied = model.state_dict(), again.state_dict()
    assert list(state) == list(copied)
    assert all(numpy.array_equal(state[each], copied[each]) for each in state)
    assert numpy.array_equal(again([[1, 2, 3]]).last_hidden_state, model([[1, 2, 3]]).last_hidden_state)


def test_a_copy_is_independent_and_keeps_training_and_int8() -> None:
    model = attn.TextModel.load(models / "sentiment")
    before = model.embed("a film")
    again = copy.deepcopy(model)
    again.fine_tune([("rice", "food"), ("rain", "weather")] * 4, labels=["food", "weather"], epochs=1, learning_rate=1e-3)
    assert numpy.array_equal(model.embed("a film"), before)
    trained = pickle.loads(pickle.dumps(again))
    assert trained.labels == again.labels == ["food", "weather"]
    assert trained.classify("rain") == again.classify("rain")
    small = attn.TextModel.load(models / "sentiment", weights="int8")
    copied = pickle.loads(pickle.dumps(small))
    assert copied.weights == "int8"
    assert numpy.array_equal(copied.embed("a film"), small.embed("a film"))


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_copy_of_a_layer_has_the_same_bits(duplicate: Callable[[Any], Any]) -> None:
    layers: list[Any] = [
        attn.MultiHeadAttention(16, 4, num_key_value_heads=2, add_zero_attn=True, threads=2),
        attn.TransformerEncoderLayer(16, 4, 32, activation="gelu", norm_first=True),
        attn.TransformerEncoder(16, 4, num_layers=2, norm="rms_norm", gated=True, final_norm=True),
    ]
    for layer in layers:
        layer.initialize("xavier_uniform", seed=7)
        for quantized in (False, True):
            if quantized:
                layer.quantize()
            again = duplicate(layer)
            assert again is not layer
            assert (repr(again), again.is_quantized, again.threads) == (repr(layer), quantized, layer.threads)
            assert numpy.array_equal(again(x).output, layer(x).output)
        layer.load_state_dict({name: numpy.zeros_like(array) for name, array in layer.state_dict().items()})
        assert not numpy.array_equal(again(x).output, layer(x).output)


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_copy_of_a_mask_masks_the_same(duplicate: Callable[[Any], Any]) -> None:
    lower = numpy.tril(numpy.ones((3, 3), numpy.float32))
    for mask in (attn.Mask.attend(lower), attn.Mask.block((lower == 0).tolist()), attn.Mask.additive(numpy.where(lower == 0, -numpy.inf, 0.5))):
        again = duplicate(mask)
        assert repr(again) == repr(mask)
        expected = attn.scaled_dot_product_attention(x, x, x, mask=mask).output
        assert numpy.array_equal(attn.scaled_dot_product_attention(x, x, x, mask=again).output, expected)


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_copy_of_a_patch_patches_the_same(duplicate: Callable[[Any], Any]) -> None:
    model = attn.TextModel.load(models / "tiny-bert")
    state = numpy.random.default_rng(4).standard_normal((1, 3, 32), numpy.float32)
    for patch in (attn.LayerPatch(-1, hidden_state=state), attn.LayerPatch(0, merged=state), attn.LayerPatch(1, hidden_state=state, merged=state * 2),
                  attn.LayerPatch(0, q_proj=state, k_proj=state, v_proj=state), attn.LayerPatch(1, weights=numpy.ones((1, 4, 3, 3)))):
        again = duplicate(patch)
        assert repr(again) == repr(patch)
        expected = model([[1, 2, 3]], patch=patch).last_hidden_state
        assert not numpy.array_equal(expected, model([[1, 2, 3]]).last_hidden_state)
        assert numpy.array_equal(model([[1, 2, 3]], patch=again).last_hidden_state, expected)


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_copy_of_word_embeddings_is_that_of_a_copied_model(duplicate: Callable[[Any], Any]) -> None:
    model = attn.TextModel.load(models / "sentiment")
    again = duplicate(model.word_embeddings)
    assert again.nearest(222, 3) == model.word_embeddings.nearest(222, 3)


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_cache_is_no_copy(duplicate: Callable[[Any], Any]) -> None:
    cache = attn.TextModel.load(models / "tiny-gpt2").create_cache(max_length=8)
    with pytest.raises(attn.UnsupportedError, match=r"KeyValueCache: the cache is tied to its model, .*create_cache\(\)"):
        duplicate(cache)


def vectors(model: attn.TextModel, texts: list[str]) -> Any:
    return model.embed(texts)


def ids(tokenizer: attn.Tokenizer, texts: list[str]) -> Any:
    return tokenizer.encode(texts).input_ids


def test_a_model_is_an_argument_of_a_worker_process(sentiment: attn.TextModel) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert numpy.array_equal(pool.submit(vectors, sentiment, ["a film"]).result(60), sentiment.embed(["a film"]))
        tokenizer = attn.Tokenizer.from_pretrained(models / "sentiment")
        assert numpy.array_equal(pool.submit(ids, tokenizer, ["a film"]).result(60), tokenizer.encode(["a film"]).input_ids)


@pytest.mark.parametrize("name", families)
def test_sizes_are_those_of_the_results(name: str) -> None:
    model = attn.TextModel.load(models / name)
    attentions = model([[1, 2]], output_attentions=True).attentions
    assert attentions is not None
    assert (model.num_layers, model.num_heads) == (len(attentions), attentions[0].shape[1])
    assert model.embedding_dimension == model.embed(["a"]).shape[1]
    assert isinstance(model.config["model_type"], str)


def test_gguf_models_have_sizes_and_copies() -> None:
    for path in sorted((testdata / "gguf").glob("tiny-*.gguf")):
        model = attn.TextModel.load(path)
        assert model.num_layers > 0
        assert numpy.array_equal(pickle.loads(pickle.dumps(model))([[1, 2]]).last_hidden_state, model([[1, 2]]).last_hidden_state)


def cached(home: Path, name: str, folder: Path) -> Path:
    """Makes the folders that huggingface_hub makes."""
    model = home / "hub" / f"models--{name.replace('/', '--')}"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("0123abc")
    (model / "snapshots").mkdir()
    (model / "snapshots" / "0123abc").symlink_to(folder)
    return model


def test_a_downloaded_model_is_loaded_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    cached(tmp_path / "home", "owner/films", models / "sentiment")
    cached(tmp_path / "home", "sentence-transformers/films-2", models / "tiny-bert")
    assert attn.TextModel.load("owner/films", weights="int8").labels == ["negative", "positive"]
    assert attn.TextModel.load("films-2").config["model_type"] == "bert"
    with pytest.raises(attn.MissingFileError, match=r"owner/other, which is not there, .* cache .*/home/hub\. .*: hf download owner/other\.$") as caught:
        attn.TextModel.load("owner/other")
    assert isinstance(caught.value, FileNotFoundError)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.delenv("HF_HOME")
    assert attn.TextModel.load("owner/films").task == "text-classification"
    # A folder of that name comes first.
    (tmp_path / "owner").mkdir()
    (tmp_path / "owner" / "films").symlink_to(models / "tiny-gpt2")
    assert attn.TextModel.load("owner/films").task == "text-generation"


def test_the_cache_is_that_of_huggingface_hub(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    import subprocess
    import sys

    program = "import attn._hub, huggingface_hub.constants as hub; assert str(attn._hub._cache()) == hub.HF_HUB_CACHE, hub.HF_HUB_CACHE"
    for env in ({}, {"HF_HOME": str(tmp_path)}, {"HF_HUB_CACHE": str(tmp_path)}, {"XDG_CACHE_HOME": str(tmp_path)}):
        subprocess.run([sys.executable, "-c", program], env={"HOME": "/nowhere"} | env, check=True)
