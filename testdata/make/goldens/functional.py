"""testdata/functional.safetensors: the functions without state, and the score functions with parameters.

The results of linear, softmax, layer_norm, rms_norm and the activations are those of torch. Positions, rotation, ALiBi and the two score functions
are computed by their formulas, which are checked against another computation."""

import cmath
import math

import torch
import torch.nn.functional as F

import common
from attention import all_masks, draw_mask, draw_padding, from_rank4, keep_first, to_rank4
from common import Case, both


class Builder:
    def __init__(self):
        self.golden = common.GoldenFile()

    def case(self, op, name, function, inputs, options):
        """function(dtype, *tensors) returns the output. inputs: dims to draw, or tensors."""
        case = Case(self.golden, name, op, options=options)
        draw = common.Draw("functional/" + name)
        tensors = [
            case.store(n, given if isinstance(given, torch.Tensor) else draw.normal(*given)) for n, given in inputs.items()
        ]
        for result in both(lambda dtype: {"output": function(dtype, *(t.to(dtype) for t in tensors))}, "output"):
            case.expect(*result)

    def score_case(self, op, name, query, key, value, *, inner=5, bias=True, mask=None, padding=None, blocks_all=False, **options):
        """query, key, value: dims. inner: the width between the two layers of additive attention."""
        name = f"{op}_{name}"
        draw = common.Draw("functional/" + name)
        options = {"needWeights": True, **options}
        case = Case(self.golden, name, op, options=options)
        tensors = {n: case.store(n, draw.normal(*dims)) for n, dims in (("query", query), ("key", key), ("value", value))}
        if op == "additive_attention":
            dims = {"queryWeight": (inner, query[-1]), "keyWeight": (inner, key[-1]), "scoreWeight": (inner,)}
            if bias:
                dims["bias"] = (inner,)
        else:
            dims = {"weight": (query[-1], key[-1])}
        given = {n: case.store(n, draw.normal(*d, std=0.75)) for n, d in dims.items()}
        found = {}
        for n, tensor, make in (("mask", "mask", mask), ("keyPaddingMask", "key_padding_mask", padding)):
            if make:
                found[n] = make(draw)
                case.json[n] = {"kind": found[n]["kind"], "tensor": tensor}
                case.store(tensor, found[n]["data"])
        rank = len(query)
        shape = (*to_rank4(tensors["query"], rank).shape[:3], key[-2])
        allowed, additive = common.combine(shape, all_masks(found), options.get("isCausal", False))
        assert bool((~allowed.any(-1)).any()) == blocks_all, name
        policy = options.get("fullyMasked", "zero")

        def run(dtype):
            q, k, v = (to_rank4(t.to(dtype), rank) for t in tensors.values())
            if options.get("enableGqa"):
                k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
            function = additive_scores if op == "additive_attention" else general_scores
            scores = function(q, k, {n: t.to(dtype) for n, t in given.items()}) * options.get("scale", 1)
            steps = common.attend(scores, v, allowed, additive, policy)
            if dtype == torch.float64 and policy == "zero" and 0 not in shape:
                none = torch.zeros(*scores.shape[:-1], 1, dtype=dtype), torch.zeros(*v.shape[:-1], 1, dtype=dtype)
                out = F.scaled_dot_product_attention(*none, v, steps["masked_scores"])
                common.assert_close(steps["context"], out, name)
            result = {n: from_rank4(t, rank) for n, t in steps.items()}
            result["output"] = result["context"]
            if options.get("averageWeights"):
                result["weights"] = steps["weights"].mean(1)
            return result

        wanted = ["output"] + ["weights"] * options["needWeights"] + list(options.get("trace", ()))
        for result in both(run, *wanted):
            case.expect(*result)


# ---------------------------------------------------------------- linear, softmax, norms


def linear(b):
    def case(name, x, out, bias=True):
        inputs = {"x": x, "weight": (out, x[-1])}
        if bias:
            inputs["bias"] = (out,)
        b.case("linear", f"linear_{name}", lambda dtype, *t: F.linear(*t), inputs, {})

    case("1", (1, 1), 1)
    case("rank1", (5,), 3)
    case("rank2", (3, 5), 7)
    case("rank2_no_bias", (5, 7), 3, bias=False)
    case("rank3", (2, 3, 17), 5)
    case("rank3_no_bias", (3, 1, 33), 4, bias=False)
    case("rank4", (2, 3, 2, 5), 3)
    case("rank4_no_bias", (1, 2, 3, 7), 1, bias=False)
    case("65_to_17", (3, 65), 17)
    case("17_to_33", (7, 17), 33)
    case("129_to_5", (2, 129), 5)
    case("129_rows", (129, 3), 3)
    case("one_in", (7, 1), 5)
    case("no_rows", (0, 3), 2)


def softmax(b):
    def case(name, x, dim=None):
        options = {} if dim is None else {"dim": dim}
        axis = -1 if dim is None else dim
        b.case("softmax", f"softmax_{name}", lambda dtype, x: F.softmax(x, axis), {"x": x}, options)

    for dims in ((7,), (5, 9), (3, 5, 7), (2, 3, 5, 4)):
        rank = len(dims)
        case(f"rank{rank}", dims)
        for dim in range(-rank, rank):
            case(f"rank{rank}_dim_{dim}".replace("-", "minus_"), dims, dim)
    case("one", (3, 1))
    case("65", (3, 65))
    case("129_dim_0", (129, 3), 0)
    case("empty", (0, 5))
    draw = common.Draw("functional/softmax")
    case("sharp", draw.normal(5, 17) * 50)
    case("far_apart", torch.tensor([[0.0, -200, -80, -87.5, -88], [100, 99, 13, 12, 0], [-1e30, 0, -103, -104, -1]]))
    case("largest", torch.tensor([[3e38, -3e38, 3e38, 0], [-3e38, -3e38, -3e38, -3e38]]))
    case("same", torch.full((2, 3), 12.5))
    some = draw.normal(4, 7)
    some[0, 3] = some[1, 0] = some[2, 1:] = -torch.inf
    case("minus_infinity", some)
    case("minus_infinity_dim_0", some, 0)
    bad = draw.normal(4, 3)
    bad[0, 1], bad[1], bad[2, 2] = torch.nan, -torch.inf, torch.inf
    case("not_a_number", bad)


def layer_norm(b):
    def case(name, x, weight=True, bias=True, **options):
        width = x.shape[-1] if isinstance(x, torch.Tensor) else x[-1]

        def function(dtype, x, *parameters):
            given = dict(zip(names, parameters))
            return F.layer_norm(x, (width,), given.get("weight"), given.get("bias"), options.get("eps", 1e-5))

        names = [n for n, present in (("weight", weight), ("bias", bias)) if present]
        b.case("layer_norm", f"layer_norm_{name}", function, {"x": x, **{n: (width,) for n in names}}, options)

    case("rank1", (7,))
    case("rank2", (5, 8))
    case("rank3", (2, 3, 17))
    case("rank4", (2, 2, 3, 5))
    case("plain", (5, 9), weight=False, bias=False)
    case("weight", (3, 7), bias=False)
    case("bias", (3, 7), weight=False)
    case("width_1", (3, 1))
    case("width_3", (7, 3))
    case("width_33", (3, 33))
    case("width_65", (3, 65))
    case("width_129", (3, 129))
    case("eps_small", (5, 8), eps=1e-12)
    case("eps_large", (5, 8), eps=0.5)
    case("no_rows", (0, 8))
    draw = common.Draw("functional/layer_norm")
    case("small_values", draw.normal(5, 8) * 2.0**-10, eps=1e-12)
    case("large_values", draw.normal(5, 8) * 2.0**40)
    case("far_from_zero", draw.normal(5, 16) + 100)  # a single pass of sums of squares would lose precision
    case("constant", torch.tensor([2.5, -7.0, 0.0])[:, None].expand(3, 9).contiguous())
    bad = draw.normal(3, 5)
    bad[0, 1], bad[2, 4] = torch.nan, torch.inf
    case("not_a_number", bad)


def rms_norm(b):
    def case(name, x, weight=True, **options):
        width = x.shape[-1] if isinstance(x, torch.Tensor) else x[-1]

        def function(dtype, x, weight=None):
            # torch's default eps depends on the dtype; attn uses that of float32.
            return F.rms_norm(x, (width,), weight, options.get("eps", 2.0**-23))

        b.case("rms_norm", f"rms_norm_{name}", function, {"x": x, **({"weight": (width,)} if weight else {})}, options)

    case("rank1", (7,))
    case("rank2", (5, 8))
    case("rank3", (2, 3, 17))
    case("rank4", (2, 2, 3, 5))
    case("plain", (5, 9), weight=False)
    case("width_1", (3, 1))
    case("width_33", (3, 33))
    case("width_65", (3, 65))
    case("width_129", (3, 129))
    case("eps", (5, 8), eps=1e-5)
    case("eps_large", (5, 8), weight=False, eps=0.5)
    draw = common.Draw("functional/rms_norm")
    case("small_values", draw.normal(5, 8) * 2.0**-12)
    case("large_values", draw.normal(5, 8) * 2.0**40)
    case("zeros", torch.zeros(2, 5))


# ---------------------------------------------------------------- activations

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "identity": lambda x: x,
    "mish": lambda x: x * torch.tanh(F.softplus(x)),  # F.mish gives infinity at 3e38
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),  # as in transformers
}


def activation(b):
    """Several ranges, because the tolerance grows with the largest value of a case."""
    wide = [0.0, -0.0, *(s * v for v in (0.5, 1, 1.5, 3, 5, 7, 8.5, 9, 9.5, 12, 16, 20, 50, 87, 88, 89, 100) for s in (1, -1))]
    tiny = [s * v for v in (2.0**-149, 2.0**-140, 2.0**-126, 2.0**-127, 1e-30, 1e-20, 1e-10, 2.0**-24, 1e-5, 1e-3) for s in (1, -1)]
    ranges = {
        "near_zero": torch.linspace(-1, 1, 33),
        "middle": torch.linspace(-4, 1.75, 129).reshape(3, 43),
        "negative": torch.linspace(-20, 0, 65).reshape(5, 13),
        "wide": torch.tensor(wide).reshape(2, 3, 6),
        "denormal": torch.tensor(tiny).reshape(1, 2, 2, 5),
        "largest": torch.tensor([3e38, -3e38, 1e20, -1e20, 1e5, -1e5]),
        "infinite": torch.tensor([torch.inf, -torch.inf, torch.nan, 1, -1]),
        "empty": torch.zeros(0, 3),
    }
    for name, function in ACTIVATIONS.items():
        for label, x in ranges.items():
            b.case("activation", f"activation_{name}_{label}", lambda dtype, x, f=function: f(x), {"x": x}, {"name": name})
        draw = common.Draw(f"functional/{name}")
        for shape in ((), (1,), (3, 7, 5)):
            x = draw.normal(*shape) if shape else draw.normal(1).reshape(())
            b.case("activation", f"activation_{name}_rank{len(shape)}", lambda dtype, x, f=function: f(x), {"x": x}, {"name": name})


# ---------------------------------------------------------------- positions


def sinusoidal_table(length, width):
    """Vaswani et al. 2017: column 2i is sin(pos / 10000^(2i/width)), column 2i + 1 its cosine. float64."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = position * 10000.0 ** (-even / width)
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : width // 2]
    return table


def sinusoidal_positions(b):
    for length, width in ((1, 1), (1, 2), (5, 3), (10, 10), (7, 17), (33, 8), (17, 33), (129, 5), (65, 12), (513, 2), (4, 129), (0, 4)):
        case = Case(b.golden, f"sinusoidal_positions_{length}_{width}", "sinusoidal_positions",
                    options={"length": length, "width": width})  # fmt: skip
        table = sinusoidal_table(length, width)
        for i in range(length):
            for c in range(width):
                angle = i / math.pow(10000, (c - c % 2) / width)
                assert abs(float(table[i, c]) - (math.cos(angle) if c % 2 else math.sin(angle))) < 1e-12 * max(1, angle)
        case.expect("output", table.float(), table)


def rotate(x, theta=10000.0, offset=0, interleaved=False):
    """Su et al. 2021. The angles are computed in float64 for either dtype, so that only the rotation is rounded."""
    half = x.shape[-1] // 2
    position = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)[:, None]
    angle = position * float(theta) ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    pair = a * cos - b * sin, b * cos + a * sin
    return torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)


def apply_rotary(b):
    def case(name, dims, **options):
        def function(dtype, x):
            y = rotate(x, **options)
            if dtype == torch.float64:  # the same as a product of complex numbers
                flat, turned = x.reshape(-1, *x.shape[-2:]), y.reshape(-1, *x.shape[-2:])
                half = x.shape[-1] // 2
                for row in range(x.shape[-2]):
                    for i in range(half):
                        one, two = (2 * i, 2 * i + 1) if options.get("interleaved") else (i, i + half)
                        turn = cmath.exp(1j * (row + options.get("offset", 0)) * options.get("theta", 1e4) ** (-2 * i / (2 * half)))
                        got, was = torch.complex(turned[:, row, one], turned[:, row, two]), torch.complex(flat[:, row, one], flat[:, row, two])
                        assert bool(((got - was * turn).abs() < 1e-11).all())
            return y

        b.case("apply_rotary", f"apply_rotary_{name}", function, {"x": dims}, options)

    case("rank4", (2, 3, 5, 8))
    case("rank3", (2, 7, 6))
    case("rank2", (5, 4))
    case("interleaved", (2, 3, 5, 8), interleaved=True)
    case("interleaved_rank2", (7, 6), interleaved=True)
    case("not_interleaved", (1, 2, 3, 6), interleaved=False)
    case("width_2", (2, 1, 9, 2))
    case("width_2_interleaved", (2, 1, 9, 2), interleaved=True)
    case("width_34", (1, 2, 3, 34))
    case("one_row", (2, 3, 1, 6))
    case("offset", (1, 2, 5, 8), offset=17)
    case("offset_interleaved", (1, 2, 5, 8), offset=17, interleaved=True)
    case("offset_4095", (1, 1, 3, 6), offset=4095)
    case("theta", (1, 2, 7, 8), theta=500)
    case("theta_million", (1, 1, 7, 10), theta=1e6, offset=3, interleaved=True)
    case("theta_1", (1, 1, 5, 4), theta=1)
    case("65_rows", (1, 1, 65, 4))
    case("empty_batch", (0, 2, 3, 4))


def alibi_slopes(heads):
    """Press et al. 2022: if n is a power of two, a geometric series whose first term and ratio are 2^(-8/n). Otherwise the slopes of the largest
    power of two n' below, followed by every other slope of 2n'."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2.0 ** (-4 * (h + 1) / power) for h in range(0, 2 * (heads - power), 2)]


def alibi_slopes_of_the_paper(heads):
    """The same slopes by recursion, as in the authors' code."""
    power = 2 ** math.floor(math.log2(heads))
    if power == heads:
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    return alibi_slopes_of_the_paper(power) + alibi_slopes_of_the_paper(2 * power)[0::2][: heads - power]


def alibi_bias(b):
    for heads in range(1, 65):
        one, other = alibi_slopes(heads), alibi_slopes_of_the_paper(heads)
        assert len(one) == heads and all(math.isclose(x, y, rel_tol=1e-13) for x, y in zip(one, other, strict=True))

    def case(heads, length, keys=None):
        slopes = torch.tensor(alibi_slopes(heads), dtype=torch.float64)
        options = {"numHeads": heads, "length": length}
        if keys is not None:
            options["keyLength"] = keys
        distance = (torch.arange(length)[:, None] - torch.arange(keys or length)).abs()
        name = f"alibi_bias_{heads}_{length}" + ("" if keys is None else f"_{keys}")
        both_ways = [(-slopes.to(dtype)[:, None, None] * distance.to(dtype))[None] for dtype in (torch.float32, torch.float64)]
        Case(b.golden, name, "alibi_bias", options=options).expect("output", *both_ways)

    for heads in (1, 2, 3, 4, 6, 8, 12, 16):
        case(heads, 5)
    case(1, 1)
    case(2, 33, 17)
    case(3, 5, 9)
    case(5, 7, 3)
    case(7, 1, 17)
    case(12, 3, 5)
    case(4, 6, 6)
    case(1, 129, 3)
    case(20, 3)


# ---------------------------------------------------------------- score functions


def additive_scores(q, k, given):
    hidden = F.linear(q, given["queryWeight"]).unsqueeze(-2) + F.linear(k, given["keyWeight"]).unsqueeze(-3)
    if "bias" in given:
        hidden = hidden + given["bias"]
    scores = torch.tanh(hidden) @ given["scoreWeight"]
    if q.dtype == torch.float64:  # Bahdanau et al. 2015 with concatenated weights: W [q; k]
        dims = (*scores.shape, -1)
        pair = torch.cat([q.unsqueeze(-2).expand(dims), k.unsqueeze(-3).expand(dims)], -1)
        joined = F.linear(pair, torch.cat([given["queryWeight"], given["keyWeight"]], 1), given.get("bias"))
        common.assert_close(scores, F.linear(torch.tanh(joined), given["scoreWeight"][None])[..., 0], "additive")
    return scores


def general_scores(q, k, given):
    scores = q @ given["weight"] @ k.transpose(-2, -1)
    if q.dtype == torch.float64:
        dims = (*scores.shape, -1)
        one, other = q.unsqueeze(-2).expand(dims).contiguous(), k.unsqueeze(-3).expand(dims).contiguous()
        common.assert_close(scores, F.bilinear(one, other, given["weight"][None])[..., 0], "general")
    return scores


def score_functions(b):
    case = b.score_case
    every = ["scores", "masked_scores", "probabilities", "context"]
    for op in ("additive_attention", "general_attention"):
        case(op, "rank2", (3, 5), (7, 4), (7, 6))
        case(op, "rank3", (2, 5, 7), (2, 3, 4), (2, 3, 5))
        case(op, "rank4", (2, 3, 5, 4), (2, 3, 7, 6), (2, 3, 7, 5))
        case(op, "no_weights", (2, 3, 4), (2, 5, 4), (2, 5, 3), needWeights=False)
        case(op, "one", (1, 1), (1, 1), (1, 1), inner=1)
        case(op, "wide", (1, 3, 33), (1, 5, 17), (1, 5, 65), inner=17)
        case(op, "one_query_65_keys", (1, 1, 5), (1, 65, 3), (1, 65, 4), inner=7)
        case(op, "scale", (2, 3, 4), (2, 5, 3), (2, 5, 4), scale=0.375)
        case(op, "scale_negative", (3, 4), (5, 3), (5, 4), scale=-2)
        case(op, "trace", (2, 3, 4), (2, 5, 3), (2, 5, 2), trace=[*every, "weighted_values"])
        case(op, "causal", (2, 7, 4), (2, 7, 3), (2, 7, 4), isCausal=True)
        case(op, "causal_more_keys_trace", (2, 2, 3, 4), (2, 2, 7, 3), (2, 2, 7, 4), isCausal=True, scale=0.5, trace=every)
        case(op, "average", (2, 3, 3, 4), (2, 3, 5, 3), (2, 3, 5, 4), averageWeights=True)
        case(op, "grouped", (2, 4, 3, 4), (2, 2, 5, 3), (2, 2, 5, 4), enableGqa=True)
        for kind, dims in (("attend", (5,)), ("block", (3, 5)), ("additive", (2, 3, 5)), ("attend", (2, 1, 1, 5)),
                           ("additive", (1, 2, 3, 5))):  # fmt: skip
            case(
                op, f"mask_{kind}_{'x'.join(map(str, dims))}", (2, 2, 3, 4), (2, 2, 5, 3), (2, 2, 5, 4),
                mask=lambda d, kind=kind, dims=dims: draw_mask(d, kind, dims),
            )  # fmt: skip
        for kind in ("attend", "block", "additive"):
            case(op, f"padding_{kind}", (2, 3, 4), (2, 7, 3), (2, 7, 4), padding=lambda d, kind=kind: draw_padding(d, kind, 2, 7))
        case(
            op, "all_masks", (2, 5, 4), (2, 7, 3), (2, 7, 4), isCausal=True, trace=every,
            mask=lambda d: keep_first(draw_mask(d, "additive", (5, 7))), padding=lambda d: draw_padding(d, "block", 2, 7),
        )  # fmt: skip
        for policy in ("zero", "nan", "uniform"):
            case(
                op, f"fully_masked_{policy}", (2, 3, 4), (2, 5, 3), (2, 5, 4), fullyMasked=policy, blocks_all=True,
                mask=lambda d: draw_mask(d, "attend", (3, 5), row=1),
            )  # fmt: skip
        case(op, "no_keys", (2, 3, 4), (2, 0, 3), (2, 0, 5), blocks_all=True)
        case(op, "empty_batch", (0, 3, 4), (0, 5, 3), (0, 5, 2))
    case("additive_attention", "no_bias", (2, 3, 4), (2, 5, 3), (2, 5, 4), bias=False)
    case("additive_attention", "no_bias_wide", (3, 4), (5, 3), (5, 4), bias=False, inner=129)


def generate():
    b = Builder()
    for part in (linear, softmax, layer_norm, rms_norm, activation, sinusoidal_positions, apply_rotary, alibi_bias, score_functions):
        part(b)
    b.golden.write(common.TESTDATA / "functional.safetensors")


if __name__ == "__main__":
    generate()
