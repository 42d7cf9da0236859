"""Functions, compared with torch and with formulas in float64."""

from collections.abc import Callable

import attn
import numpy
import pytest

from golden import cases

rng = numpy.random.default_rng(11)
# Relative error of one float32 rounding.
eps = 2.0**-24


@pytest.mark.parametrize(
    ("op", "count"),
    [
        ("linear", 14),
        ("softmax", 35),
        ("layer_norm", 20),
        ("rms_norm", 14),
        ("activation", 99),
        ("sinusoidal_positions", 12),
        ("apply_rotary", 18),
        ("alibi_bias", 17),
    ],
)
def test_functions_agree_with_torch(op: str, count: int) -> None:
    ran = 0
    for case in cases("functional", op):
        inputs = case.inputs() if "inputs" in case.entry else {}
        case.check("output", getattr(attn, op)(**inputs, **case.options()))
        ran += 1
    assert ran == count


def test_linear_agrees_with_float64() -> None:
    x, weight, bias = (rng.standard_normal(shape, numpy.float32) for shape in ((3, 5, 64), (7, 64), (7,)))
    expected = x.astype(float) @ weight.T.astype(float) + bias
    # 64 products and a bias round each term at most 66 times.
    allowed = 66 * eps * (numpy.abs(x).astype(float) @ numpy.abs(weight.T) + numpy.abs(bias))
    assert (numpy.abs(attn.linear(x, weight, bias) - expected) <= allowed).all()
    assert numpy.array_equal(attn.linear(x, weight), attn.linear(x, weight, numpy.zeros(7)))


def test_softmax_agrees_with_float64() -> None:
    x = rng.standard_normal((4, 6, 5), numpy.float32) * 8
    for dim in (-1, 0, 1):
        exponents = numpy.exp(x.astype(float) - x.max(axis=dim, keepdims=True))
        y = attn.softmax(x, dim)
        # exp multiplies the error of x - max by |x - max|; exp, sum and division round.
        allowed = eps * (numpy.ptp(x) + 4 + x.shape[dim] + 2)
        assert (numpy.abs(y / (exponents / exponents.sum(axis=dim, keepdims=True)) - 1) <= allowed).all()
    assert numpy.isnan(attn.softmax([-numpy.inf, -numpy.inf])).all()
    assert numpy.array_equal(attn.softmax([0, -numpy.inf]), [1, 0])


def test_norms_agree_with_float64() -> None:
    x, weight, bias = (rng.standard_normal(shape, numpy.float32) for shape in ((9, 48), (48,), (48,)))
    wide = x.astype(float)
    centred = wide - wide.mean(axis=1, keepdims=True)
    normal = centred / numpy.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    root = wide / numpy.sqrt((wide**2).mean(axis=1, keepdims=True) + 2**-23)
    # Two means round 48 times, 8 operations follow, and |x| is below 4 deviations.
    most = 4 * (2 * 48 + 8) * eps
    for got, expected in (
        (attn.layer_norm(x), normal),
        (attn.layer_norm(x, weight, bias), normal * weight + bias),
        (attn.layer_norm(x, bias=bias), normal + bias),
        (attn.rms_norm(x), root),
        (attn.rms_norm(x, weight), root * weight),
    ):
        assert numpy.abs(got - expected).max() <= most * numpy.abs(expected).max()
    assert numpy.abs(attn.layer_norm(x, eps=3.0) - centred / numpy.sqrt(wide.var(axis=1, keepdims=True) + 3)).max() <= most * 4


def test_rotary_scores_depend_only_on_the_distance() -> None:
    q, k = (rng.standard_normal(32, numpy.float32) for _ in range(2))
    for interleaved in (False, True):
        turned = [attn.apply_rotary(numpy.tile(row, (20, 1)), interleaved=interleaved).astype(float) for row in (q, k)]
        scores = turned[0] @ turned[1].T
        # Two rounded factors in 32 products.
        allowed = 4 * eps * float(numpy.abs(q).astype(float) @ numpy.abs(k)) * 2
        for distance in range(-19, 20):
            assert numpy.ptp(numpy.diagonal(scores, distance)) <= allowed
        assert numpy.array_equal(
            attn.apply_rotary(numpy.tile(q, (20, 1)), interleaved=interleaved)[7:],
            attn.apply_rotary(numpy.tile(q, (13, 1)), offset=7, interleaved=interleaved),
        )
    first = attn.apply_rotary([[0, 0], [1, 0]], theta=3)
    assert numpy.abs(first[1] - [numpy.cos(1), numpy.sin(1)]).max() <= eps


def test_a_layer_is_bitwise_equal_to_its_functions() -> None:
    x = rng.standard_normal((2, 5, 16), numpy.float32)
    layer = attn.TransformerEncoderLayer(16, 4, 32, activation="gelu")
    state = layer.state_dict()
    q, k, v = (
        attn.linear(x, weight, bias).reshape(2, 5, 4, 4).swapaxes(1, 2)
        for weight, bias in zip(numpy.split(state["self_attn.in_proj_weight"], 3), numpy.split(state["self_attn.in_proj_bias"], 3), strict=True)
    )
    heads = attn.scaled_dot_product_attention(q, k, v).output.swapaxes(1, 2).reshape(2, 5, 16)
    attended = attn.linear(heads, state["self_attn.out_proj.weight"], state["self_attn.out_proj.bias"])
    middle = attn.layer_norm(x + attended, state["norm1.weight"], state["norm1.bias"])
    hidden = attn.activation(attn.linear(middle, state["linear1.weight"], state["linear1.bias"]), "gelu")
    output = attn.layer_norm(
        middle + attn.linear(hidden, state["linear2.weight"], state["linear2.bias"]), state["norm2.weight"], state["norm2.bias"]
    )
    assert numpy.array_equal(layer(x).output, output)


def test_the_number_of_threads_does_not_change_the_result(threads: int) -> None:
    x, weight = rng.standard_normal((300, 96), numpy.float32), rng.standard_normal((96, 96), numpy.float32)
    calls: list[Callable[[int], numpy.ndarray]] = [
        lambda count: attn.linear(x, weight, threads=count),
        lambda count: attn.softmax(x, threads=count),
        lambda count: attn.layer_norm(x, threads=count),
        lambda count: attn.rms_norm(x, threads=count),
        lambda count: attn.activation(x, "gelu", threads=count),
        lambda count: attn.apply_rotary(x, threads=count),
    ]
    for call in calls:
        assert numpy.array_equal(call(1), call(threads))


def test_invalid_arguments_raise() -> None:
    x = numpy.ones((2, 3))
    for error, call in (
        (attn.ShapeError, lambda: attn.linear(x, numpy.ones((4, 2)))),
        (attn.ShapeError, lambda: attn.linear(x, numpy.ones((4, 3)), numpy.ones(3))),
        (attn.ShapeError, lambda: attn.layer_norm(x, numpy.ones(2))),
        (attn.ShapeError, lambda: attn.rms_norm(1.0)),
        (attn.ConfigError, lambda: attn.layer_norm(x, eps=0)),
        (attn.OutOfRangeError, lambda: attn.softmax(x, 2)),
        (attn.ConfigError, lambda: attn.activation(x, "swish")),
        (attn.ShapeError, lambda: attn.apply_rotary(x)),
        (attn.ConfigError, lambda: attn.apply_rotary(numpy.ones((2, 4)), theta=-1)),
        (attn.ArgumentError, lambda: attn.sinusoidal_positions(-1, 4)),
        (attn.ConfigError, lambda: attn.alibi_bias(0, 4)),
        (attn.DtypeError, lambda: attn.softmax([1j])),
    ):
        with pytest.raises(error):
            call()
