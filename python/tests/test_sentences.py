"""The names of sentence-transformers."""

import json
import shutil
import sys
from pathlib import Path

import attn
import numpy
import pytest

from golden import testdata

models = testdata / "models"


@pytest.fixture
def prompted(tmp_path: Path) -> Path:
    """A checkpoint whose files have prompts."""
    folder = shutil.copytree(models / "sentiment", tmp_path / "model")
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "find: ", "passage": "text: "}}))
    return folder


def test_encode_is_embed_with_a_row_for_a_single_text(sentiment: attn.TextModel) -> None:
    texts = ["a film", "a film about the sea", ""]
    expected = sentiment.embed(texts)
    assert numpy.array_equal(sentiment.encode(texts, batch_size=2), expected)
    assert numpy.array_equal(sentiment.encode(texts[0]), expected[0])
    assert sentiment.encode(texts[0]).shape == (64,)
    assert sentiment.encode([]).shape == (0, 64)
    assert numpy.array_equal(sentiment.encode(texts, normalize=True), sentiment.embed(texts, normalize=True))


def test_truncate_dim_keeps_the_first_components(sentiment: attn.TextModel) -> None:
    whole = sentiment.embed(["a film", "the sea"])
    assert numpy.array_equal(sentiment.encode(["a film", "the sea"], truncate_dim=8), whole[:, :8])
    assert numpy.array_equal(sentiment.encode("a film", truncate_dim=100), whole[0])
    short = sentiment.encode(["a film", "the sea"], truncate_dim=8, normalize=True)
    assert numpy.allclose(short, whole[:, :8] / numpy.linalg.norm(whole[:, :8], axis=1, keepdims=True), atol=1e-6)
    for wrong in (0, -1, "8", 0.5):
        with pytest.raises(attn.ConfigError, match="encode: truncate_dim is "):
            sentiment.encode("a", truncate_dim=wrong)  # type: ignore[arg-type]


def test_queries_and_documents_have_their_prompts(prompted: Path, sentiment: attn.TextModel) -> None:
    model = attn.TextModel.load(prompted)
    assert model.prompts == {"query": "find: ", "passage": "text: ", "document": ""}  # as in SentenceTransformer.prompts
    assert sentiment.prompts == {"query": "", "document": ""}
    assert numpy.array_equal(model.encode_query("a film"), model.embed("a film", prompt="find: ")[0])
    assert numpy.array_equal(model.encode_document(["a film"]), model.embed("a film", prompt="text: "))
    assert numpy.array_equal(model.encode_document(["a film"], prompt_name="query"), model.embed("a film", prompt="find: "))
    assert numpy.array_equal(model.encode_query(["a film"], prompt=""), model.embed("a film"))
    assert not numpy.array_equal(model.encode_query("a film"), model.encode("a film"))
    assert numpy.array_equal(sentiment.encode_query("a film"), sentiment.encode("a film"))


def test_similarity_is_that_of_the_checkpoint(prompted: Path) -> None:
    rng = numpy.random.default_rng(1)
    a, b = rng.standard_normal((2, 8), numpy.float32), rng.standard_normal((3, 8), numpy.float32)
    difference = a[:, None] - b[None]
    lengths = numpy.linalg.norm(a, axis=1)[:, None] * numpy.linalg.norm(b, axis=1)
    expected = {"cosine": a @ b.T / lengths, "dot": a @ b.T}
    expected |= {"euclidean": -numpy.sqrt((difference**2).sum(2)), "manhattan": -numpy.abs(difference).sum(2)}
    for name, scores in expected.items():
        (prompted / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": name}))
        model = attn.TextModel.load(prompted)
        got = model.similarity(a, b.tolist())
        assert got.dtype == numpy.float32
        assert numpy.allclose(got, scores, atol=1e-5), name
        assert model.similarity(a[0], b[0]).shape == (1, 1)
        assert model.similarity(numpy.zeros((0, 8)), b).shape == (0, 3)
    with pytest.raises(attn.ShapeError, match=r"similarity: b is an array of shape \(3, 7\)"):
        model.similarity(a, b[:, :7])
    with pytest.raises(attn.DtypeError, match="similarity: a is "):
        model.similarity("a", b)  # type: ignore[arg-type]


def test_encode_refuses_unknown_arguments(sentiment: attn.TextModel) -> None:
    for function in (sentiment.encode, sentiment.encode_query, sentiment.encode_document):
        with pytest.raises(attn.UnknownArgumentError, match=r"convert_to_tensor is unknown, .* results are numpy arrays\."):
            function("a", convert_to_tensor=True)  # type: ignore[call-arg]
    with pytest.raises(attn.UnknownArgumentError, match=r"Write progress\."):
        sentiment.encode("a", show_progress_bar=True)  # type: ignore[call-arg]
    with pytest.raises(attn.ArgumentError, match="encode: texts is missing"):
        sentiment.encode()  # type: ignore[call-arg]


def test_progress_is_shown_by_tqdm(sentiment: attn.TextModel, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    sentiment.encode(["a film"] * 5, batch_size=2, progress=True)
    shown = capsys.readouterr().err
    assert "encode" in shown
    assert "5/5" in shown


def test_a_missing_tqdm_is_named(sentiment: attn.TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(attn.UnsupportedError, match="pip install tqdm"):
        sentiment.encode("a", progress=True)
    assert sentiment.encode("a").shape == (64,)
