"""Kinds of arrays as arguments, and the memory of results."""

import gc
import pickle
import resource
import sys
from typing import Any

import attn
import ml_dtypes
import numpy
import pytest

from golden import testdata

sdpa = attn.scaled_dot_product_attention
rng = numpy.random.default_rng(5)


def arrays(*shape: int) -> list[numpy.ndarray]:
    return [rng.standard_normal(shape, numpy.float32) for _ in range(3)]


def frozen(array: numpy.ndarray) -> numpy.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array: numpy.ndarray) -> numpy.ndarray:
    memory = numpy.zeros(array.nbytes + 1, numpy.uint8)
    other = memory[1:].view(numpy.float32).reshape(array.shape)
    other[...] = array
    assert not other.flags.aligned
    return other


def a_field(array: numpy.ndarray) -> numpy.ndarray:
    """Returns a view whose strides are not multiples of the item size."""
    records = numpy.zeros(array.shape, numpy.dtype([("byte", "u1"), ("number", "<f4")]))
    records["number"] = array
    return records["number"]


layouts = {
    "float64": lambda x: x.astype(numpy.float64),
    "the other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "a list": lambda x: x.tolist(),
    "read-only": frozen,
    "unaligned": unaligned,
    "a field of records": a_field,
    "Fortran's order": numpy.asfortranarray,
    "a transpose": lambda x: numpy.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "heads from the middle": lambda x: numpy.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2),
    "rows backwards": lambda x: numpy.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :],
    "numbers backwards": lambda x: numpy.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "every second number": lambda x: numpy.repeat(x, 2, axis=-1)[..., ::2],
    "a part of something larger": lambda x: numpy.pad(x, 3)[3:-3, 3:-3, 3:-3, 3:-3],
    "a matrix of numpy's": lambda x: x.view(numpy.ma.MaskedArray),
    "a buffer": lambda x: memoryview(x),
}


@pytest.mark.parametrize("layout", layouts)
def test_all_memory_layouts_give_the_same_output(layout: str) -> None:
    q, k, v = arrays(2, 3, 5, 4)
    expected = sdpa(q, k, v).output
    q, k, v = (layouts[layout](x) for x in (q, k, v))
    assert numpy.array_equal(sdpa(q, k, v).output, expected)
    assert numpy.array_equal(sdpa(q, k, v, mask=attn.Mask.additive(numpy.zeros((5, 5), numpy.float64))).output, expected)


def test_a_broadcast_array_is_read_in_place() -> None:
    q, k, v = arrays(1, 1, 5, 4)
    wide = [numpy.broadcast_to(x, (2, 3, 5, 4)) for x in (q, k, v)]
    assert numpy.array_equal(sdpa(*wide).output, numpy.broadcast_to(sdpa(q, k, v).output, (2, 3, 5, 4)))


def test_half_precision_and_whole_numbers_become_float32() -> None:
    q = rng.integers(-3, 3, (2, 5, 4))
    expected = sdpa(*[q.astype(numpy.float32)] * 3).output
    for kind in (numpy.float16, ml_dtypes.bfloat16, numpy.int8, numpy.int64, numpy.longdouble):
        assert numpy.array_equal(sdpa(*[q.astype(kind)] * 3).output, expected)
    assert numpy.array_equal(sdpa(*[q > 0] * 3).output, sdpa(*[(q > 0).astype(numpy.float32)] * 3).output)


def test_arrays_that_numpy_cannot_read_are_named_with_their_type() -> None:
    class Bfloat16:
        def __str__(self) -> str:
            return "torch.bfloat16"

    class Tensor:
        """As torch's with bfloat16, whose dtype is not a str."""

        dtype = Bfloat16()

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise TypeError("Got unsupported ScalarType BFloat16")

    x = numpy.ones((2, 2), numpy.float32)
    model = attn.ImageModel.load(testdata / "vision" / "tiny-vit")
    for call in (lambda: sdpa(x, Tensor(), x), lambda: attn.Mask.attend(Tensor()), lambda: attn.Embedding(2, 2)(Tensor()), lambda: model.embed(Tensor())):
        with pytest.raises(attn.DtypeError, match="is torch.bfloat16, expected an array that numpy can read .Got unsupported ScalarType BFloat16"):
            call()


@pytest.mark.parametrize(
    "given",
    [
        numpy.ones((2, 2), complex),
        numpy.array([["a", "b"], ["c", "d"]]),
        numpy.array([[None, {}], [1, 2]], object),
        numpy.zeros((2, 2), "datetime64[s]"),
        numpy.zeros((2, 2), [("x", "f4")]),
        [["a", "b"]],
        object(),
    ],
    ids=lambda given: str(getattr(given, "dtype", type(given).__name__)),
)
def test_arrays_without_real_numbers_raise_dtype_error(given: Any) -> None:
    x = numpy.ones((2, 2), numpy.float32)
    for call in (
        lambda: sdpa(x, given, x),
        lambda: attn.MultiHeadAttention(2, 1)(given),
        lambda: attn.Mask.attend(given),
        lambda: attn.Mask.additive(given),
        lambda: attn.write_safetensors({"x": given}),
    ):
        with pytest.raises(attn.DtypeError) as caught:
            call()
        assert isinstance(caught.value, TypeError)
        assert caught.value.detail["expected"] == "real numbers"


def test_rows_of_different_lengths_name_their_argument() -> None:
    x, ragged = numpy.ones((2, 2), numpy.float32), [[1, 2], [3]]
    model = attn.TextModel.load(testdata / "models" / "sentiment")
    for call, name in (
        (lambda: sdpa(x, ragged, x), "key"),
        (lambda: attn.Mask.block(ragged), "mask"),
        (lambda: attn.Embedding(5, 2)(ragged), "ids"),
        (lambda: model(ragged), "input_ids"),
    ):
        with pytest.raises(attn.ShapeError, match=f"{name} is a list with rows of different lengths, expected rows of equal lengths"):
            call()


def test_invalid_shapes_raise_and_empty_shapes_work() -> None:
    q = numpy.ones((2, 3), numpy.float32)
    for key in (numpy.float32(1), numpy.ones(3), numpy.ones((2, 4)), numpy.ones((1, 2, 3)), numpy.ones((1,) * 6), numpy.ones((1,) * 20)):
        with pytest.raises(attn.ShapeError) as caught:
            sdpa(q, key, q)
        assert isinstance(caught.value, ValueError)
        assert caught.value.detail["argument"] == "key"
    assert sdpa(numpy.ones((0, 3)), q, q).output.shape == (0, 3)
    assert sdpa(q, numpy.ones((0, 3)), numpy.ones((0, 5)), need_weights=True).weights.shape == (2, 0)
    assert (sdpa(q, numpy.ones((0, 3)), numpy.ones((0, 5))).output == 0).all()


def test_huge_results_raise_before_any_allocation() -> None:
    wide = numpy.broadcast_to(numpy.float32(1), (1 << 40, 1))
    with pytest.raises(attn.OutOfMemoryError) as caught:
        sdpa(wide, wide, wide, need_weights=True)
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(MemoryError):
        attn.TransformerEncoder(1 << 24, 1, 10_000)


def test_nan_and_infinity_affect_only_queries_that_see_them() -> None:
    x = numpy.ones((4, 2), numpy.float32)
    v = x.copy()
    v[2] = numpy.nan
    v[3] = numpy.inf
    seen = sdpa(x, x, v).output
    assert numpy.isnan(seen).all()
    blocked = sdpa(x, x, v, mask=attn.Mask.block([0, 0, 1, 1])).output
    assert (blocked == 1).all()
    with pytest.raises(attn.MaskError):
        sdpa(x, x, v, mask=attn.Mask.additive([0, 0, numpy.nan, 0]))


def test_masks_of_all_kinds_give_the_same_output() -> None:
    q, k, v = arrays(2, 3, 5, 4)
    seen = rng.random((2, 1, 5, 5)) > 0.4
    seen[..., 0] = True
    expected = sdpa(q, k, v, mask=attn.Mask.attend(seen), need_weights=True)
    assert (expected.weights[numpy.broadcast_to(~seen, (2, 3, 5, 5))] == 0).all()
    for mask in (
        attn.Mask.attend(seen.astype(numpy.int64) * 7),
        attn.Mask.attend(numpy.asfortranarray(seen)),
        attn.Mask.block(~seen),
        attn.Mask.additive(numpy.where(seen, 0, -numpy.inf)),
    ):
        assert numpy.array_equal(sdpa(q, k, v, mask=mask).output, expected.output)
    for mask in (seen, [[1]], "causal", 1):
        with pytest.raises(attn.ArgumentError, match=r"Mask\.attend"):
            sdpa(q, k, v, mask=mask)
    with pytest.raises(attn.MaskError):
        sdpa(q, k, v, mask=attn.Mask.attend(numpy.ones((5, 6))))


def test_options_out_of_range_raise() -> None:
    x = numpy.ones((2, 2), numpy.float32)
    for options in (
        {"fully_masked": "none"},
        {"dropout": 1.0},
        {"dropout": -0.5},
        {"scale": float("nan")},
        {"softcap": -1},
        {"window": (-2, 0)},
        {"query_offset": 2**60},
        {"trace": ["no such"]},
    ):
        with pytest.raises(attn.ConfigError):
            sdpa(x, x, x, **options)
    for options in ({"seed": -1}, {"is_causal": "yes"}, {"trace": 3}, {"window": 3}, {"threads": -1}, {"no_such_option": 1}):
        with pytest.raises(TypeError):
            sdpa(x, x, x, **options)


def test_results_own_their_memory() -> None:
    q, k, v = arrays(2, 3, 5, 4)
    # The next results would reuse freed memory.
    outputs = [sdpa(q * i, k, v, need_weights=True).output for i in range(20)]
    gc.collect()
    for i, output in enumerate(outputs):
        assert numpy.array_equal(output, sdpa(q * i, k, v).output)
        assert output.flags.c_contiguous
        assert output.flags.writeable
        assert not any(numpy.shares_memory(output, x) for x in (q, k, v, *outputs[:i]))
    outputs[0][...] = 7
    assert (outputs[1] != 7).all()


def test_calls_release_their_inputs() -> None:
    q, k, v = arrays(2, 3, 5, 4)
    mask = numpy.zeros((5, 5), numpy.float32)
    before = [sys.getrefcount(x) for x in (q, k, v, mask)]
    sdpa(q, k, v, mask=attn.Mask.additive(mask))
    with pytest.raises(attn.ShapeError):
        sdpa(q, k, v[..., :2, :])
    assert [sys.getrefcount(x) for x in (q, k, v, mask)] == before


def test_repeated_calls_do_not_leak_memory(sentiment: attn.TextModel) -> None:
    x = numpy.ones((8, 64, 64), numpy.float32)
    encoding = sentiment.tokenize(["a good film"] * 8)
    layer = attn.MultiHeadAttention(64, 4)

    def calls() -> None:
        for _ in range(50):
            sdpa(x, x, x, need_weights=True, trace=True)
            layer(x, output_present=True)
            layer.load_state_dict(layer.state_dict())
            sentiment(encoding, output_attentions=True, trace=True)
            sentiment.embed(["a good film"])
            with pytest.raises(attn.ShapeError):
                sdpa(x, x[:1], x)
            with pytest.raises(attn.DtypeError):
                sdpa(x, x.astype(complex), x)

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    if not sys.platform.startswith("linux"):
        pytest.skip("memory is read from /proc")
    calls()
    gc.collect()
    before = resident()
    for _ in range(5):
        calls()
    gc.collect()
    # A leaked array per call would be 32 MB.
    assert resident() - before < 8 << 20


def test_results_and_errors_can_be_pickled(sentiment: attn.TextModel) -> None:
    encoding = pickle.loads(pickle.dumps(sentiment.tokenize(["not bad"])))
    output = sentiment(encoding, output_attentions=True)
    again = pickle.loads(pickle.dumps(output))
    assert numpy.array_equal(again.logits, output.logits)
    with pytest.raises(attn.ShapeError) as caught:
        sentiment([1])
    error = pickle.loads(pickle.dumps(caught.value))
    assert (type(error), str(error), error.code, error.detail) == (attn.ShapeError, str(caught.value), "SHAPE", caught.value.detail)


def test_help_is_the_last_sentence_of_a_message_and_survives_pickling() -> None:
    x = numpy.ones((2, 2), numpy.float32)
    with pytest.raises(attn.ArgumentError) as caught:
        sdpa(x, x, x, mask=x)
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.help == error.detail["help"] == "Use Mask.attend(m), Mask.block(m) or Mask.additive(m)"
    assert str(error) == f"attention: mask is ndarray, expected a Mask. {error.help}."
    with pytest.raises(attn.ShapeError) as without:
        sdpa(x, x[:1], x)
    assert without.value.help is None
    assert not str(without.value).endswith(".")


def test_masked_entries_raise_instead_of_losing_their_mask(sentiment: attn.TextModel) -> None:
    x = numpy.ones((3, 2), numpy.float32)
    masked = numpy.ma.masked_array(x, x * [[0, 1]] == 1)
    ids = numpy.ma.masked_array([[1, 2]], [[False, True]])
    for call in (
        lambda: sdpa(x, masked, x),
        lambda: attn.softmax(masked.astype(float)),
        lambda: attn.Mask.attend(masked),
        lambda: attn.Mask.additive(masked),
        lambda: attn.write_safetensors({"x": masked}),
        lambda: sentiment(ids),
        lambda: attn.show(masked[:2], ["a", "b"]),
    ):
        with pytest.raises(attn.ArgumentError, match=r"expected an array without masked entries\. .*filled"):
            call()
    assert numpy.array_equal(attn.softmax(masked.filled(0)), attn.softmax(x * [[1, 0]]))


def test_numpy_integers_are_accepted_as_options(sentiment: attn.TextModel) -> None:
    for kind in (numpy.int8, numpy.int64, numpy.uint16):
        assert sentiment.tokenize("a good film", max_length=kind(4), truncation=True).input_ids.shape == (1, 4)
        assert attn.softmax(numpy.ones((2, 3)), dim=kind(1), threads=kind(1)).shape == (2, 3)
        assert attn.MultiHeadAttention(kind(8), kind(2)).parameter_count == 4 * 72
        assert len(sentiment.classify("a good film", top_k=kind(1))[0]) == 1
    with pytest.raises(TypeError):
        attn.softmax([1.0], dim=numpy.float64(0))  # type: ignore[arg-type]


def test_wrong_names_raise_argument_or_config_error() -> None:
    with pytest.raises(attn.ArgumentError, match="a name is int, expected a str"):
        attn.write_safetensors({1: [1.0]})  # type: ignore[dict-item]
    with pytest.raises(attn.ConfigError, match="trace is int, expected one of q_proj"):
        sdpa([[1.0]], [[1.0]], [[1.0]], trace=[1])  # type: ignore[list-item]


def test_every_error_code_has_a_class() -> None:
    words = (testdata.parent / "src/attn/tensor/error.hpp").read_text()
    codes = words[words.index("kErrorCodeNames{") :].split("}")[0].split('"')[1::2]
    assert {each.code for each in attn.AttnError.__subclasses__()} == {*codes, "DTYPE"}
    for each in attn.AttnError.__subclasses__():
        assert getattr(attn, each.__name__) is each
        assert each.__module__ == "attn"


def test_safetensors_are_read_back_unchanged(tmp_path: Any) -> None:
    tensors = {"a": arrays(2, 3)[0], "b": numpy.arange(3.0), "c": numpy.float32(1), "ä": numpy.zeros((0, 2))}
    path = tmp_path / "x.safetensors"
    path.write_bytes(attn.write_safetensors(tensors, {"made": "here"}))
    again = attn.read_safetensors(path)
    assert sorted(again) == sorted(tensors)
    for name, array in again.items():
        assert array.dtype == numpy.float32
        assert numpy.array_equal(array, tensors[name])
    assert list(attn.read_safetensors(str(testdata / "safetensors_python.safetensors")))
    for what in (tmp_path, tmp_path / "none"):
        with pytest.raises(attn.FormatError):
            attn.read_safetensors(what)
    with pytest.raises(attn.ArgumentError):
        attn.write_safetensors({"__metadata__": [1.0]})
