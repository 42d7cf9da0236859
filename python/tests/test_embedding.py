"""attn.Embedding, and the word embeddings of a model."""

import copy
import pickle
import subprocess
import sys

import attn
import numpy
import pytest

from golden import testdata

rng = numpy.random.default_rng(5)
TABLE = rng.standard_normal((40, 6), numpy.float32)


def cosines(table: numpy.ndarray, vector: numpy.ndarray) -> numpy.ndarray:
    return table @ vector / (numpy.linalg.norm(table, axis=1) * numpy.linalg.norm(vector))


@pytest.fixture
def words() -> attn.Embedding:
    made = attn.Embedding(40, 6)
    made.load_state_dict({"weight": TABLE})
    return made


def test_nearest_rows_are_those_of_numpy(words: attn.Embedding) -> None:
    vector = rng.standard_normal(6, numpy.float32)
    scores = cosines(TABLE, vector)
    got = words.nearest(vector, 5)
    assert [each.id for each in got] == numpy.argsort(-scores)[:5].tolist()
    assert numpy.allclose([each.similarity for each in got], numpy.sort(scores)[::-1][:5], atol=1e-6)
    own = [id for id in numpy.argsort(-cosines(TABLE, TABLE[7])).tolist() if id != 7]
    for id in (7, numpy.int64(7)):
        assert [each.id for each in words.nearest(id, 3)] == own[:3]
    assert len(words.nearest(7, 100)) == 39
    assert words.nearest(7, 0) == []


def test_similarity_and_analogy_are_those_of_numpy(words: attn.Embedding) -> None:
    assert abs(words.similarity(3, 9) - cosines(TABLE, TABLE[3])[9]) < 1e-6
    expected = [id for id in numpy.argsort(-cosines(TABLE, TABLE[2] - TABLE[1] + TABLE[3])).tolist() if id not in (1, 2, 3)]
    assert [each.id for each in words.analogy(1, 2, 3, 4)] == expected[:4]


def test_rows_and_their_gradients(words: attn.Embedding) -> None:
    ids = numpy.array([[3, 0], [3, 39]])
    assert numpy.array_equal(words(ids), TABLE[ids])
    assert words([]).shape == (0, 6)
    grad = rng.standard_normal((2, 2, 6), numpy.float32)
    assert numpy.array_equal(words.forward(ids, for_backward=True), TABLE[ids])
    words.backward(grad)
    expected = numpy.zeros_like(TABLE)
    numpy.add.at(expected, ids, grad)
    assert numpy.allclose(words.gradients()["weight"], expected, atol=1e-6)
    with pytest.raises(attn.ArgumentError, match="backward"):
        words.backward(grad)


def test_a_new_table_is_that_of_its_seed_and_has_copies() -> None:
    words = attn.Embedding(5, 3, padding_idx=1)
    assert numpy.array_equal(words([1]), numpy.zeros((1, 3)))
    assert numpy.array_equal(words([0, 2]), attn.Embedding(5, 3, padding_idx=1)([0, 2]))
    for other in (copy.copy(words), pickle.loads(pickle.dumps(words))):
        assert numpy.array_equal(other.get_parameter("weight"), words.get_parameter("weight"))
    assert repr(words) == "attn.Embedding(num_embeddings=5, embedding_dim=3, padding_idx=1)"
    assert words.parameter_count == 15
    words.quantize()
    assert words.is_quantized


def test_word_embeddings_are_in_the_memory_of_the_model() -> None:
    model = attn.TextModel.load(testdata / "models" / "sentiment")
    words = model.word_embeddings
    name = next(name for name in model.parameter_shapes() if name.endswith("word_embeddings.weight"))
    table = model.get_parameter(name)
    assert numpy.array_equal(words([[5, 6]]), table[[[5, 6]]])
    good, bad = model.token_to_id("good"), model.token_to_id("bad")
    assert good is not None
    assert bad is not None
    assert abs(words.similarity(good, bad) - cosines(table, table[good])[bad]) < 1e-5
    assert words.nearest(table[good], 1)[0].id == good
    assert all(each.id != good for each in words.nearest(good, 10))
    assert len(words.analogy(good, bad, 5, 2)) == 2
    table[bad] = table[good]
    model.load_state_dict({name: table}, strict=False)
    assert words.nearest(good, 1)[0].id == bad
    del model  # the view keeps the model
    assert words.nearest(good, 1)[0].similarity > 0.9999


def test_word_embeddings_do_not_keep_a_model_for_ever() -> None:
    program = "import attn, sys; model = attn.TextModel.load(sys.argv[1]); words = model.word_embeddings; words.nearest(3, 1); del model"
    command = [sys.executable, "-c", program, str(testdata / "models" / "sentiment")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stderr == ""


def test_wrong_ids_and_vectors_are_refused(words: attn.Embedding, sentiment: attn.TextModel) -> None:
    for table in (words, sentiment.word_embeddings):
        with pytest.raises(attn.OutOfRangeError):
            table.nearest(10**6, 3)
        with pytest.raises(attn.OutOfRangeError):
            table.nearest(-1, 3)
        with pytest.raises(attn.ShapeError, match="nearest: target"):
            table.nearest([1.0, 2.0], 3)
        with pytest.raises(attn.ArgumentError, match="k"):
            table.nearest(1, -1)
        with pytest.raises(attn.DtypeError):
            table.nearest("good", 3)  # type: ignore[arg-type]
        with pytest.raises(attn.OutOfRangeError):
            table.similarity(0, 10**6)
        with pytest.raises(attn.OutOfRangeError):
            table([10**6])
    with pytest.raises(attn.ArgumentError, match=r"Write model\.word_embeddings"):
        attn.WordEmbeddings()
    with pytest.raises(attn.ConfigError):
        attn.Embedding(0, 3)


def test_layers_have_single_parameters() -> None:
    for layer in (attn.MultiHeadAttention(8, 2), attn.TransformerEncoder(8, 2, 1, 16), attn.Embedding(3, 2)):
        for name, value in layer.state_dict().items():
            assert numpy.array_equal(layer.get_parameter(name), value)
        with pytest.raises(attn.OutOfRangeError, match=r"get_parameter: name is none, expected a name in parameter_shapes\(\)"):
            layer.get_parameter("none")


def test_ids_of_64_bits_do_not_wrap() -> None:
    words = attn.Embedding(5, 3)
    for ids in (numpy.array([2**64 - 1], numpy.uint64), numpy.array([1, 2**63 + 2], numpy.uint64), numpy.array([2**32 + 1])):
        with pytest.raises(attn.OutOfRangeError, match=str(max(int(id) for id in ids))):
            words(ids)
    assert words(numpy.array([4], numpy.uint64)).shape == (1, 3)
