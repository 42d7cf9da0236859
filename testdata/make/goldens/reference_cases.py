"""testdata/reference_cases.safetensors: the reference cases of attention.

Large inputs are stored as their seed, large results as some rows and the sum."""

import torch
import torch.nn.functional as F

import common
from common import Case, both
from multi_head_attention import by_formula, torch_module


def attend(query, key, value, dtype, scale=None, causal=False):
    """Ranks 2 and 3: the output by torch's function, everything else by the formula."""
    q, k, v = (t.to(dtype) for t in (query, key, value))
    rank4 = [t[:, None] if t.dim() == 3 else t[None, None] if t.dim() == 2 else t for t in (q, k, v)]
    dims = (*rank4[0].shape[:3], k.shape[-2])
    allowed, _ = common.combine(dims, [], causal)
    steps = common.attention(*rank4, q.shape[-1] ** -0.5 if scale is None else scale, allowed, None)
    steps = {n: t if q.dim() == 4 else t[:, 0] if q.dim() == 3 else t[0, 0] for n, t in steps.items()}
    steps["output"] = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    if dtype == torch.float64:
        common.assert_close(steps["context"], steps["output"], "attend")
    return steps


def worked_example(golden):
    """Case 1. Projections without bias, scale 1, no output projection; all numbers are integers."""
    case = Case(golden, "worked_example", "projected_attention", options={"scale": 1, "needWeights": True}, state=[])
    x = case.store("x", torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]))
    weights = {  # (in,out), as in the article
        "q": [[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
        "k": [[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
        "v": [[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
    }
    state = {n: case.store(f"state.{n}_proj.weight", torch.tensor(w).T.contiguous()) for n, w in weights.items()}

    def run(dtype):
        q, k, v = (F.linear(x.to(dtype), state[n].to(dtype)) for n in "qkv")
        return {"q": q, "k": k, "v": v, **attend(q, k, v, dtype, scale=1)}

    for result in both(run, "q", "k", "v", "scores", "weights", "weighted_values", "output"):
        case.expect(*result)
    known = {
        "q": [[1, 0, 2], [2, 2, 2], [2, 1, 3]],
        "k": [[0, 1, 1], [4, 4, 0], [2, 3, 1]],
        "v": [[1, 2, 3], [2, 8, 0], [2, 6, 3]],
        "scores": [[2, 4, 4], [4, 16, 12], [4, 12, 10]],
        "output": [[1.936621, 6.683105, 1.595068], [1.999994, 7.963992, 0.053976], [1.999705, 7.759892, 0.358389]],
    }
    found = run(torch.float64)
    for name, values in known.items():
        common.assert_close(found[name], torch.tensor(values, dtype=torch.float64), name, 1e-6)
    # The article rounds the weights to at most one decimal and continues with those.
    short = torch.tensor([[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]])
    golden.add("worked_example/article.weights", short)
    golden.add("worked_example/article.output", short.double() @ found["v"])


def shapes(golden):
    """Case 2. Fewer queries than keys, and values wider than keys."""
    case = Case(golden, "shapes", "scaled_dot_product_attention", options={"needWeights": True})
    query = case.generate("query", "uniform", 201, (3, 30, 128), 2)
    key = case.generate("key", "uniform", 202, (3, 50, 128), 2)
    value = case.generate("value", "uniform", 203, (3, 50, 256), 2)
    for result in both(lambda dtype: attend(query, key, value, dtype), "output", "weights"):
        case.expect(*result)


def self_attention_steps(golden):
    """Case 3. Every intermediate of a layer, with the usual scale and with the scale of the full width."""
    names = ("q_proj", "k_proj", "v_proj", "q", "k", "v", "scores", "context", "merged")
    for name, module in {
        "every_intermediate": {"embedDim": 200, "numHeads": 5},
        "every_intermediate_full_width_scale": {"embedDim": 200, "numHeads": 5, "scale": 200**-0.5},
    }.items():
        options = {"needWeights": True, "trace": list(names)}
        case = Case(golden, name, "multi_head_attention", module=module, options=options, state=[])
        x = case.generate("query", "uniform", 301, (128, 32, 200), 2)
        state = {
            n: case.generate(f"state.{n}", "uniform", seed, dims, factor)
            for n, seed, dims, factor in (
                ("in_proj_weight", 302, (600, 200), 0.125),
                ("in_proj_bias", 303, (600,), 0.5),
                ("out_proj.weight", 304, (200, 200), 0.125),
                ("out_proj.bias", 305, (200,), 0.5),
            )
        }
        for result in both(lambda dtype: layer(module, state, x, x, None, False, dtype), *names, "weights", "output"):
            case.expect(*result)


def layer(module, state, query, memory, padding, causal, dtype):
    """One multi-head attention layer: intermediates by the formula, output and weights by torch if it supports the scale."""
    dims = (query.shape[0], module["numHeads"], query.shape[1], memory.shape[1])
    masks = [] if padding is None else [{"kind": "attend", "data": padding[:, None, None, :]}]
    allowed, _ = common.combine(dims, masks, causal)
    scale = module.get("scale", (module["embedDim"] // module["numHeads"]) ** -0.5)
    steps = by_formula(module, state, (query, memory, memory), scale, allowed, None, "zero", dtype)
    if "scale" in module:
        return steps
    output, weights = torch_module(module, state, dtype)(
        query.to(dtype),
        memory.to(dtype),
        memory.to(dtype),
        key_padding_mask=None if padding is None else padding == 0,
        attn_mask=~torch.ones(dims[2:], dtype=torch.bool).tril() if causal else None,
        average_attn_weights=False,
    )
    if dtype == torch.float64:
        common.assert_close(steps["output"], output, "layer")
        common.assert_close(steps["weights"], weights, "layer")
    return {**steps, "output": output, "weights": weights}


def causal_single_head(golden):
    """Case 4. Three Linear(10, 4) and one causal head, no output projection."""
    case = Case(golden, "causal_single_head", "projected_attention", options={"isCausal": True, "needWeights": True}, state=[])
    draw = common.Draw("reference/causal_single_head")
    x = case.store("x", draw.normal(5, 10))
    weight = {n: case.store(f"state.{n}_proj.weight", draw.normal(4, 10, std=0.5)) for n in "qkv"}
    bias = {n: case.store(f"state.{n}_proj.bias", draw.normal(4, std=0.5)) for n in "qkv"}

    def run(dtype):
        q, k, v = (F.linear(x.to(dtype), weight[n].to(dtype), bias[n].to(dtype)) for n in "qkv")
        return {"q": q, "k": k, "v": v, **attend(q, k, v, dtype, causal=True)}

    for result in both(run, "q", "k", "v", "scores", "weights", "output"):
        case.expect(*result)


def score_functions(golden):
    """Case 6. The two score functions without parameters."""
    draw = common.Draw("reference/score_functions")
    query, key, value = draw.normal(2, 5, 8), draw.normal(2, 7, 8), draw.normal(2, 7, 6)
    for name, scale in (("dot", 1), ("scaled_dot", None)):
        options = {"needWeights": True} if scale is None else {"scale": scale, "needWeights": True}
        case = Case(golden, name, "scaled_dot_product_attention", options=options)
        for n, tensor in (("query", query), ("key", key), ("value", value)):
            case.store(n, tensor)
        for result in both(lambda dtype: attend(query, key, value, dtype, scale), "output", "weights"):
            case.expect(*result)


def encoder_decoder(golden):
    """Case 10. Causal self-attention over y, whose output then attends to a padded memory."""
    module = {"embedDim": 32, "numHeads": 4}

    def state_of(case, seed):
        return {
            n: case.generate(f"state.{n}", "uniform", seed + i, dims, 0.25)
            for i, (n, dims) in enumerate(
                {"in_proj_weight": (96, 32), "in_proj_bias": (96,), "out_proj.weight": (32, 32), "out_proj.bias": (32,)}.items()
            )
        }

    options = {"isCausal": True, "needWeights": True}
    case = Case(golden, "decoder_self_attention", "multi_head_attention", module=module, options=options, state=[])
    y = case.generate("query", "uniform", 1001, (3, 30, 32), 2)
    first = state_of(case, 1010)
    results = both(lambda dtype: layer(module, first, y, y, None, True, dtype), "output", "weights")
    for result in results:
        case.expect(*result)
    hidden = results[0][2].float()

    case = Case(golden, "encoder_decoder_attention", "multi_head_attention", module=module, options={"needWeights": True}, state=[])
    query = case.store("query", hidden)
    memory = case.generate("key", "uniform", 1002, (3, 50, 32), 4)
    padding = (torch.arange(50) < torch.tensor([50, 37, 21])[:, None]).float()
    case.json["keyPaddingMask"] = {"kind": "attend", "tensor": "key_padding_mask"}
    case.store("key_padding_mask", padding)
    second = state_of(case, 1020)
    run = both(lambda dtype: layer(module, second, query, memory, padding, False, dtype), "output", "weights")
    for result in run:
        case.expect(*result)


def why_the_scale(golden):
    """Case 11. For q, k ~ N(0, 1) of width D the variance of q·k is about D, and about 1 after scaling."""
    for width in (16, 64, 256):
        for label, scale in (("dot", 1), ("scaled", None)):
            options = {"needWeights": True, "trace": ["scores"]}
            if scale is not None:
                options["scale"] = scale
            case = Case(golden, f"variance_{label}_{width}", "scaled_dot_product_attention", options=options)
            query = case.generate("query", "normal", 1100 + width, (1, 1, 128, width))
            key = case.generate("key", "normal", 2100 + width, (1, 1, 128, width))
            value = case.generate("value", "normal", 3100 + width, (1, 1, 128, 4))
            results = both(lambda dtype: attend(query, key, value, dtype, scale), "output", "weights", "scores")
            for result in results:
                case.expect(*result)
            variance = float(results[2][2].var(correction=0))
            should = width if scale else 1
            assert abs(variance / should - 1) < 0.1, (width, variance)
            case.json["variance"] = {"scores": variance}


def generate():
    golden = common.GoldenFile()
    for part in (worked_example, shapes, self_attention_steps, causal_single_head, score_functions, encoder_decoder,
                 why_the_scale):  # fmt: skip
        part(golden)
    golden.write(common.TESTDATA / "reference_cases.safetensors")


if __name__ == "__main__":
    generate()
