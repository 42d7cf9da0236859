"""testdata/multi_head_attention.safetensors: multi-head attention compared with nn.MultiheadAttention.

If torch's module can express a case, the numbers are those of torch. The others (no output projection, another scale, another policy for queries
without keys) come from the formula in common.py, which must agree with torch in all other cases."""

import warnings

import torch
import torch.nn.functional as F

import common
from attention import draw_mask, draw_padding, keep_first, mask_to_rank4
from functional import rotate

# Mixing bool and float masks is deprecated in torch, so they are combined by hand below.
warnings.filterwarnings("ignore", message="Support for mismatched")

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "q", "k", "v")
INSIDE = ("scores", "masked_scores", "probabilities", "weighted_values", "context", "merged")


def widths(module):
    """Number of query heads and of key/value heads, width of a head's query and key, width of its value."""
    heads = module["numHeads"]
    head = module.get("headDim", module["embedDim"] // heads)
    return heads, module.get("numKeyValueHeads", heads), head, module.get("valueHeadDim", head)


def draw_state(draw, module):
    """Draws a state with torch's names and layouts. Biases are not zero, otherwise a missing one would go unnoticed."""
    embed, kdim, vdim = module["embedDim"], module.get("kdim"), module.get("vdim")
    heads, groups, head, value_head = widths(module)
    state = {}
    bias = module.get("bias", True)
    if module.keys() & {"numKeyValueHeads", "headDim", "valueHeadDim"}:
        dims = {"q": (heads * head, embed), "k": (groups * head, kdim or embed), "v": (groups * value_head, vdim or embed)}
        for letter, (out, width) in dims.items():
            state[f"{letter}_proj.weight"] = draw.normal(out, width, std=width**-0.5)
            if bias:
                state[f"{letter}_proj.bias"] = draw.normal(out, std=0.5)
    elif kdim in (None, embed) and vdim in (None, embed):
        state["in_proj_weight"] = draw.normal(3 * embed, embed, std=embed**-0.5)
    else:
        state["q_proj_weight"] = draw.normal(embed, embed, std=embed**-0.5)
        state["k_proj_weight"] = draw.normal(embed, kdim or embed, std=(kdim or embed) ** -0.5)
        state["v_proj_weight"] = draw.normal(embed, vdim or embed, std=(vdim or embed) ** -0.5)
    if bias and "q_proj.weight" not in state:
        state["in_proj_bias"] = draw.normal(3 * embed, std=0.5)
    if module.get("outProj", True):
        merged = heads * value_head
        state["out_proj.weight"] = draw.normal(embed, merged, std=merged**-0.5)
        if bias:
            state["out_proj.bias"] = draw.normal(embed, std=0.5)
    if module.get("addBiasKv", False):
        state["bias_k"] = draw.normal(1, 1, groups * head)
        state["bias_v"] = draw.normal(1, 1, groups * value_head)
    return state


def separate(state):
    """The same state in separate-projection form."""
    result = {name: tensor for name, tensor in state.items() if name.startswith(("out_proj", "bias_"))}
    weights, biases = projections(state)
    for letter, weight, bias in zip("qkv", weights, biases):
        result[f"{letter}_proj.weight"] = weight.clone()
        if bias is not None:
            result[f"{letter}_proj.bias"] = bias.clone()
    return result


def projections(state):
    if "q_proj.weight" in state:
        return [state[f"{letter}_proj.weight"] for letter in "qkv"], [state.get(f"{letter}_proj.bias") for letter in "qkv"]
    if "in_proj_weight" in state:
        weights = state["in_proj_weight"].chunk(3)
    else:
        weights = [state[f"{letter}_proj_weight"] for letter in "qkv"]
    biases = state["in_proj_bias"].chunk(3) if "in_proj_bias" in state else (None,) * 3
    return weights, biases


def in_torch_form(module, state):
    """A state in separate-projection form with torch's names, in which each key/value head is repeated for the query heads that share it. None if
    torch has no such module."""
    heads, groups, head, value_head = widths(module)
    embed = module["embedDim"]
    if heads * head != embed or value_head != head:
        return None
    if "q_proj.weight" not in state:
        return state

    def repeat(tensor):
        return tensor.unflatten(0, (groups, head)).repeat_interleave(heads // groups, 0).flatten(0, 1)

    weights, biases = projections(state)
    weights = [weights[0], *map(repeat, weights[1:])]
    result = {name: tensor for name, tensor in state.items() if name.startswith("out_proj")}
    if all(weight.shape[1] == embed for weight in weights):
        result["in_proj_weight"] = torch.cat(weights)
    else:
        result.update({f"{letter}_proj_weight": weight for letter, weight in zip("qkv", weights)})
    if biases[0] is not None:
        result["in_proj_bias"] = torch.cat([biases[0], *map(repeat, biases[1:])])
    for name in {"bias_k", "bias_v"} & state.keys():
        result[name] = repeat(state[name].flatten()).reshape(1, 1, embed)
    return result


def by_formula(module, state, inputs, scale, allowed, additive, policy, dtype):
    """Computes all intermediates by their trace names, from inputs of rank 3."""
    heads, groups, _, _ = widths(module)
    state = {name: tensor.to(dtype) for name, tensor in state.items()}
    steps = {}
    leaves_out = policy == "nan" and torch.is_grad_enabled()  # NaN rows, which must not affect gradients of invisible keys
    if leaves_out:
        seen = allowed.any((1, 2)).unsqueeze(-1)
        inputs = (inputs[0], *(torch.where(seen, x, 0) for x in inputs[1:]))
    for letter, x, weight, bias, count in zip("qkv", inputs, *projections(state), (heads, groups, groups)):
        projected = F.linear(x.to(dtype), weight, bias)
        steps[f"{letter}_proj"] = projected
        rows = [projected.unflatten(-1, (count, -1)).transpose(1, 2)]
        if f"bias_{letter}" in state:
            rows.append(state[f"bias_{letter}"].reshape(1, count, 1, -1).expand(len(x), -1, -1, -1))
        if letter != "q" and module.get("addZeroAttn", False):
            rows.append(projected.new_zeros(len(x), count, 1, rows[0].shape[-1]))
        steps[letter] = rows[0] if len(rows) == 1 else torch.cat(rows, 2)
    if "rotary" in module:
        steps["q"], steps["k"] = (rotate(steps[n], **module["rotary"]) for n in "qk")
    k, v = (steps[n] if groups == heads else steps[n].repeat_interleave(heads // groups, 1) for n in "kv")
    scores = (common.scores_of_pairs(steps["q"], k, allowed) if leaves_out else steps["q"] @ k.transpose(-2, -1)) * scale
    if cap := module.get("softcap"):
        scores = cap * torch.tanh(scores / cap)
    steps.update(common.attend(scores, v, allowed, additive, policy))
    steps["merged"] = steps["context"].transpose(1, 2).flatten(2)
    steps["output"] = steps["merged"]
    if "out_proj.weight" in state:
        steps["output"] = F.linear(steps["merged"], state["out_proj.weight"], state.get("out_proj.bias"))
    return steps


def torch_module(module, state, dtype):
    layer = torch.nn.MultiheadAttention(
        module["embedDim"],
        module["numHeads"],
        bias=module.get("bias", True),
        kdim=module.get("kdim"),
        vdim=module.get("vdim"),
        add_bias_kv=module.get("addBiasKv", False),
        add_zero_attn=module.get("addZeroAttn", False),
        batch_first=True,
        dtype=dtype,
    )
    layer.load_state_dict({name: tensor.to(dtype) for name, tensor in state.items()})
    return layer.eval()


def torch_masks(found, causal, dims, allowed, additive, dtype):
    """Masks as torch takes them: attn_mask (L,S) or (B*H,L,S), key_padding_mask (B,S); in a bool mask True hides a key."""
    batch, heads, length, keys = dims

    def one(mask):
        if mask["kind"] == "additive":
            return mask["data"].to(dtype)
        return mask["data"] == 0 if mask["kind"] == "attend" else mask["data"] != 0

    plain = [m for m in found.values()]
    if not causal and len({m["kind"] == "additive" for m in plain}) < 2:
        attn, pad = (one(found[n]) if n in found else None for n in ("mask", "keyPaddingMask"))
        if attn is not None and attn.dim() != 2:
            data = mask_to_rank4(attn)
            attn = data.expand(dims).reshape(batch * heads, length, keys)
        return attn, pad
    if causal and not plain:
        return ~torch.ones(length, keys, dtype=torch.bool).tril(), None
    bias = torch.zeros(dims, dtype=dtype) if additive is None else additive.to(dtype)
    return torch.where(allowed, bias, -torch.inf).reshape(batch * heads, length, keys), None


class Builder:
    def __init__(self):
        self.golden = common.GoldenFile()

    def case(self, name, query, key=None, value=None, *, module, mask=None, padding=None, form="torch", blocks_all=False,
             **options):
        """query, key, value: dims; without key it is self-attention, without value the value is the key. module: options of the constructor;
        options: options of forward."""
        draw = common.Draw("multi_head_attention/" + name)
        state = draw_state(draw, module)
        given = {"query": draw.normal(*query)}
        if key:
            given["key"] = draw.normal(*key)
        if value:
            given["value"] = draw.normal(*value)
        found = {}
        if mask:
            found["mask"] = mask(draw)
        if padding:
            found["keyPaddingMask"] = padding(draw)
        options = {"needWeights": True, **options}
        policy = options.get("fullyMasked", "zero")
        average, causal = options.get("averageWeights", False), options.get("isCausal", False)
        flat = len(query) == 2

        q = given["query"]
        k = given.get("key", q)
        v = given.get("value", k)
        inputs = [t[None] if flat else t for t in (q, k, v)]
        scale = options.get("scale", module.get("scale", widths(module)[2] ** -0.5))
        extra = module.get("addBiasKv", False) + module.get("addZeroAttn", False)
        dims = (inputs[0].shape[0], module["numHeads"], inputs[0].shape[1], inputs[1].shape[1])
        masks = []
        if "mask" in found:
            masks.append({"kind": found["mask"]["kind"], "data": mask_to_rank4(found["mask"]["data"])})
        if "keyPaddingMask" in found:
            pad = found["keyPaddingMask"]
            masks.append({"kind": pad["kind"], "data": pad["data"][:, None, None, :]})
        allowed, additive = common.combine(dims, masks, causal)
        every = F.pad(allowed, (0, extra), value=True)
        every_additive = None if additive is None else F.pad(additive, (0, extra))
        assert bool((~every.any(-1)).any()) == blocks_all, name

        def formula(dtype):
            steps = by_formula(module, state, inputs, scale, every, every_additive, policy, dtype)
            if dtype == torch.float64 and not blocks_all:
                self.check_context(name, steps, scale)
            result = {n: steps[n] for n in ("output", "weights", *options.get("trace", ()))}
            if average:
                result["weights"] = result["weights"].mean(1)
            return {n: t[0] for n, t in result.items()} if flat else result

        def from_torch(dtype):
            layer = torch_module(module, torch_state, dtype)
            attn, pad = torch_masks(found, causal, dims, allowed, additive, dtype)
            if flat:
                attn = attn.reshape(-1, *attn.shape[-2:]) if attn is not None and attn.dim() > 2 else attn
                pad = None if pad is None else pad[0]
            output, weights = layer(
                *(t.to(dtype) for t in (q, k, v)),
                attn_mask=attn,
                key_padding_mask=pad,
                need_weights=True,
                average_attn_weights=average,
            )
            return {"output": output, "weights": weights}

        single, double = formula(torch.float32), formula(torch.float64)
        # torch returns NaN for a query without keys, and refuses an empty batch or sequence.
        torch_state = in_torch_form(module, state)
        expressible = torch_state and module.get("outProj", True) and "scale" not in module and "scale" not in options
        if expressible and all(dims) and (not blocks_all or policy == "nan"):
            for n, t in from_torch(torch.float64).items():
                common.assert_close(double[n], t, f"{name}: {n}")
                double[n] = t
            single.update(from_torch(torch.float32))

        case = {
            "name": name,
            "op": "multi_head_attention",
            "module": module,
            "options": options,
            "inputs": [],
            "state": [],
            "expected": {},
        }
        for n, tensor in given.items():
            case["inputs"].append(n)
            self.golden.add(f"{name}/{n}", tensor)
        for n, tensor in (("mask", "mask"), ("keyPaddingMask", "key_padding_mask")):
            if n in found:
                case[n] = {"kind": found[n]["kind"], "tensor": tensor}
                case["inputs"].append(tensor)
                self.golden.add(f"{name}/{tensor}", found[n]["data"])
        for n, tensor in (state if form == "torch" else separate(state)).items():
            case["state"].append(n)
            self.golden.add(f"{name}/state.{n}", tensor)
        for n in double:
            self.golden.expect(case, n, single[n], double[n])
        self.golden.cases.append(case)


    @staticmethod
    def check_context(name, steps, scale):
        """For heads that no torch module has, only torch's function can be compared."""
        bias = steps["masked_scores"] - steps["scores"]
        given = F.scaled_dot_product_attention(steps["q"], steps["k"], steps["v"], bias, scale=scale, enable_gqa=True)
        common.assert_close(steps["context"], given, f"{name}: context")


def options(embed, heads, **more):
    return {"embedDim": embed, "numHeads": heads, **more}


def self_attention(b):
    b.case("self", (2, 5, 8), module=options(8, 2))
    b.case("self_average", (2, 5, 8), module=options(8, 2), averageWeights=True)
    b.case("self_no_bias", (2, 5, 8), module=options(8, 2, bias=False))
    b.case("self_no_bias_average", (1, 3, 6), module=options(6, 3, bias=False), averageWeights=True)
    b.case("self_one_head", (2, 7, 5), module=options(5, 1))
    b.case("self_heads_of_width_1", (2, 3, 5), module=options(5, 5))
    b.case("self_odd", (3, 7, 15), module=options(15, 5))
    b.case("self_33", (1, 33, 9), module=options(9, 3))
    b.case("self_width_17", (2, 3, 17), module=options(17, 1))
    b.case("self_width_34", (1, 5, 34), module=options(34, 2))
    b.case("self_one_token", (3, 1, 8), module=options(8, 4))
    b.case("self_width_1", (2, 3, 1), module=options(1, 1))


def cross_attention(b):
    b.case("cross", (2, 5, 8), (2, 7, 8), module=options(8, 2))
    b.case("cross_average", (2, 5, 8), (2, 7, 8), module=options(8, 2), averageWeights=True)
    b.case("cross_value", (2, 5, 8), (2, 7, 8), (2, 7, 8), module=options(8, 4))
    b.case("cross_one_key", (2, 5, 6), (2, 1, 6), module=options(6, 2))
    b.case("cross_one_query", (1, 1, 6), (1, 33, 6), module=options(6, 3))
    b.case("cross_no_bias", (2, 3, 6), (2, 5, 6), (2, 5, 6), module=options(6, 3, bias=False))
    b.case("kdim", (2, 5, 8), (2, 7, 3), (2, 7, 8), module=options(8, 2, kdim=3))
    b.case("vdim", (2, 5, 8), (2, 7, 8), (2, 7, 5), module=options(8, 2, vdim=5))
    b.case("kdim_vdim", (2, 5, 9), (2, 7, 5), (2, 7, 7), module=options(9, 3, kdim=5, vdim=7))
    b.case("kdim_vdim_wide", (1, 3, 6), (1, 5, 17), (1, 5, 13), module=options(6, 2, kdim=17, vdim=13), averageWeights=True)
    b.case("kdim_vdim_no_bias", (1, 3, 6), (1, 5, 4), (1, 5, 7), module=options(6, 2, kdim=4, vdim=7, bias=False))
    b.case("kdim_equals_vdim", (2, 3, 6), (2, 5, 4), module=options(6, 2, kdim=4, vdim=4))


def masks(b):
    two = options(8, 2)
    q, k = (2, 5, 8), (2, 7, 8)
    for kind in ("attend", "block", "additive"):
        for label, dims in {"ls": (5, 7), "bhls": (2, 2, 5, 7)}.items():
            b.case(f"mask_{kind}_{label}", q, k, module=two, mask=lambda d, kind=kind, dims=dims: draw_mask(d, kind, dims))
    b.case("mask_additive_s", q, k, module=two, mask=lambda d: draw_mask(d, "additive", (7,)))
    b.case("mask_block_bls", q, k, module=two, mask=lambda d: draw_mask(d, "block", (2, 5, 7)))
    b.case("mask_attend_1h1s", q, k, module=two, mask=lambda d: draw_mask(d, "attend", (1, 2, 1, 7)))
    b.case("mask_bias_only", q, k, module=two, mask=lambda d: draw_mask(d, "bias", (1, 2, 5, 7)))
    for kind in ("attend", "block", "additive"):
        b.case(f"padding_{kind}", q, k, module=two, padding=lambda d, kind=kind: draw_padding(d, kind, 2, 7))
    for mask, pad in (("block", "block"), ("attend", "block"), ("additive", "additive"), ("additive", "block"),
                      ("block", "additive")):  # fmt: skip
        b.case(
            f"mask_{mask}_padding_{pad}", q, k, module=two,
            mask=lambda d, mask=mask: keep_first(draw_mask(d, mask, (5, 7))),
            padding=lambda d, pad=pad: draw_padding(d, pad, 2, 7),
        )  # fmt: skip
    b.case(
        "mask_padding_kdim_average", (2, 5, 6), (2, 7, 4), (2, 7, 5), module=options(6, 3, kdim=4, vdim=5), averageWeights=True,
        mask=lambda d: keep_first(draw_mask(d, "block", (2, 3, 5, 7))), padding=lambda d: draw_padding(d, "block", 2, 7),
    )  # fmt: skip


def causal(b):
    b.case("causal", (2, 7, 8), module=options(8, 2), isCausal=True)
    b.case("causal_more_keys", (2, 3, 6), (2, 7, 6), module=options(6, 2), isCausal=True)
    b.case("causal_more_queries", (2, 7, 6), (2, 3, 6), module=options(6, 2), isCausal=True, averageWeights=True)
    b.case(
        "causal_padding", (2, 7, 8), module=options(8, 2), isCausal=True, padding=lambda d: draw_padding(d, "block", 2, 7),
    )  # fmt: skip
    b.case(
        "causal_mask", (2, 7, 8), module=options(8, 2), isCausal=True, mask=lambda d: draw_mask(d, "additive", (2, 2, 7, 7)),
    )  # fmt: skip


def unbatched(b):
    b.case("rank2", (5, 8), module=options(8, 2))
    b.case("rank2_average", (5, 8), module=options(8, 2), averageWeights=True)
    b.case("rank2_cross_kdim", (5, 6), (7, 4), (7, 5), module=options(6, 3, kdim=4, vdim=5))
    b.case(
        "rank2_mask_padding", (5, 8), (7, 8), module=options(8, 2),
        mask=lambda d: keep_first(draw_mask(d, "block", (5, 7))), padding=lambda d: draw_padding(d, "block", 1, 7, [4]),
    )  # fmt: skip
    b.case("rank2_mask_per_head", (5, 8), (7, 8), module=options(8, 2), mask=lambda d: draw_mask(d, "additive", (1, 2, 5, 7)))


def no_output_projection(b):
    b.case("merged", (2, 5, 8), module=options(8, 2, outProj=False))
    b.case("merged_no_bias", (2, 3, 6), (2, 5, 6), module=options(6, 3, outProj=False, bias=False))
    b.case("merged_kdim", (2, 3, 6), (2, 5, 4), (2, 5, 7), module=options(6, 2, outProj=False, kdim=4, vdim=7))
    b.case("merged_causal_rank2", (5, 10), module=options(10, 1, outProj=False), isCausal=True, averageWeights=True)
    b.case("merged_scale", (2, 3, 6), module=options(6, 2, outProj=False, scale=1))


def scales(b):
    b.case("scale_of_module", (2, 5, 8), module=options(8, 2, scale=1))
    b.case("scale_of_full_width", (2, 5, 10), module=options(10, 5, scale=10**-0.5))
    b.case("scale_of_call", (2, 5, 8), module=options(8, 2), scale=0.25)
    b.case("scale_of_call_wins", (2, 5, 8), module=options(8, 2, scale=1), scale=0.125, averageWeights=True)


def separate_projections(b):
    b.case("separate", (2, 5, 8), module=options(8, 2), form="separate")
    b.case("separate_no_bias", (2, 5, 6), (2, 3, 6), module=options(6, 3, bias=False), form="separate")
    b.case("separate_kdim", (2, 5, 6), (2, 3, 4), (2, 3, 5), module=options(6, 3, kdim=4, vdim=5), form="separate")
    b.case("separate_merged", (2, 5, 8), module=options(8, 4, outProj=False), form="separate")


def fully_masked(b):
    for policy in ("zero", "nan", "uniform"):
        b.case(
            f"fully_masked_{policy}", (2, 5, 8), (2, 7, 8), module=options(8, 2), fullyMasked=policy, blocks_all=True,
            mask=lambda d: draw_mask(d, "block", (5, 7), row=2),
        )  # fmt: skip
        b.case(
            f"fully_masked_{policy}_padding", (2, 5, 8), module=options(8, 2), fullyMasked=policy, blocks_all=True,
            averageWeights=True, padding=lambda d: draw_padding(d, "attend", 2, 5, [3, 0]),
        )  # fmt: skip


def traces(b):
    every = [*PROJECTIONS, *INSIDE]
    b.case("trace", (2, 5, 6), module=options(6, 2), trace=every)
    b.case(
        "trace_cross", (2, 3, 6), (2, 5, 4), (2, 5, 7), module=options(6, 3, kdim=4, vdim=7), trace=every,
        padding=lambda d: draw_padding(d, "attend", 2, 5),
    )  # fmt: skip
    b.case("trace_causal_merged", (1, 5, 6), module=options(6, 2, outProj=False, scale=1), trace=every, isCausal=True)


def added_keys(b):
    """A learned key, a key of zeros, or both after the last key of the input."""
    both = {"addBiasKv": True, "addZeroAttn": True}
    ways = {"bias_kv": {"addBiasKv": True}, "zero_attn": {"addZeroAttn": True}, "bias_kv_zero_attn": both}
    q, k = (2, 5, 8), (2, 7, 8)
    for label, way in ways.items():
        two = options(8, 2, **way)
        b.case(f"{label}", (2, 5, 8), module=two)
        b.case(f"{label}_cross_average", (2, 3, 6), (2, 5, 6), module=options(6, 3, **way), averageWeights=True)
        b.case(f"{label}_causal", (2, 7, 8), module=two, isCausal=True)
        for kind, dims in (("attend", (5, 7)), ("block", (2, 2, 5, 7)), ("additive", (2, 1, 1, 7))):
            b.case(
                f"{label}_mask_{kind}", q, k, module=two, mask=lambda d, kind=kind, dims=dims: draw_mask(d, kind, dims),
            )  # fmt: skip
        b.case(f"{label}_padding", q, k, module=two, padding=lambda d: draw_padding(d, "block", 2, 7))
    every = [*PROJECTIONS, *INSIDE]
    b.case("bias_kv_no_bias", (2, 3, 6), module=options(6, 2, bias=False, addBiasKv=True))
    b.case("bias_kv_kdim_vdim", (2, 3, 6), (2, 5, 4), (2, 5, 7), module=options(6, 3, kdim=4, vdim=7, **both))
    b.case("bias_kv_separate", (2, 3, 6), module=options(6, 2, addBiasKv=True), form="separate")
    b.case("bias_kv_rank2", (5, 6), module=options(6, 2, **both), isCausal=True)
    b.case("bias_kv_merged", (2, 3, 6), module=options(6, 2, outProj=False, **both))
    b.case(
        "bias_kv_trace", (2, 3, 6), (2, 5, 6), module=options(6, 2, **both), trace=every, isCausal=True,
        mask=lambda d: keep_first(draw_mask(d, "additive", (3, 5))), padding=lambda d: draw_padding(d, "attend", 2, 5),
    )  # fmt: skip
    b.case("zero_attn_trace_rank2", (3, 6), (5, 6), module=options(6, 2, addZeroAttn=True), trace=every)
    # With an added key no query is fully masked, so the policy has no effect.
    for policy in ("zero", "nan", "uniform"):
        b.case(
            f"zero_attn_all_padded_{policy}", (2, 3, 6), module=options(6, 2, addZeroAttn=True), fullyMasked=policy,
            padding=lambda d: draw_padding(d, "attend", 2, 3, [2, 0]),
        )  # fmt: skip
    b.case("bias_kv_no_keys", (2, 3, 6), (2, 0, 6), module=options(6, 2, **both))
    b.case("zero_attn_17_by_65", (1, 17, 4), (1, 65, 4), module=options(4, 2, addZeroAttn=True))


def grouped_heads(b):
    b.case("grouped_4_2", (2, 5, 8), module=options(8, 4, numKeyValueHeads=2))
    b.case("grouped_6_1", (2, 5, 6), (2, 7, 6), module=options(6, 6, numKeyValueHeads=1))
    b.case("grouped_6_3_average", (2, 5, 12), (2, 7, 12), module=options(12, 6, numKeyValueHeads=3), averageWeights=True)
    b.case("grouped_equal", (2, 3, 6), module=options(6, 3, numKeyValueHeads=3))
    b.case("grouped_no_bias", (2, 3, 8), module=options(8, 4, numKeyValueHeads=2, bias=False))
    b.case("grouped_kdim_vdim", (2, 3, 8), (2, 5, 3), (2, 5, 7), module=options(8, 4, numKeyValueHeads=2, kdim=3, vdim=7))
    b.case("grouped_merged_scale", (2, 3, 8), module=options(8, 4, numKeyValueHeads=2, outProj=False, scale=1))
    b.case("grouped_rank2", (5, 8), module=options(8, 4, numKeyValueHeads=1), isCausal=True)
    b.case(
        "grouped_mask_per_head", (2, 5, 8), (2, 7, 8), module=options(8, 4, numKeyValueHeads=2),
        mask=lambda d: draw_mask(d, "block", (2, 4, 5, 7)),
    )  # fmt: skip
    b.case(
        "grouped_bias_kv_padding", (2, 5, 8), (2, 7, 8), padding=lambda d: draw_padding(d, "block", 2, 7),
        module=options(8, 4, numKeyValueHeads=2, addBiasKv=True, addZeroAttn=True),
    )  # fmt: skip
    b.case("grouped_trace", (1, 3, 8), module=options(8, 4, numKeyValueHeads=2), trace=[*PROJECTIONS, *INSIDE], isCausal=True)


def head_widths(b):
    b.case("head_dim", (2, 5, 8), module=options(8, 2, headDim=3))
    b.case("head_dim_wide", (2, 3, 5), (2, 7, 5), module=options(5, 3, headDim=7))
    b.case("head_dim_default", (2, 3, 6), module=options(6, 2, headDim=3))
    b.case("head_dim_1", (2, 3, 7), module=options(7, 2, headDim=1), averageWeights=True)
    b.case("head_dim_17_of_5", (1, 5, 5), module=options(5, 2, headDim=17))
    b.case("value_head_dim", (2, 5, 8), module=options(8, 2, valueHeadDim=3))
    b.case("value_head_dim_wide", (2, 3, 6), (2, 5, 6), module=options(6, 3, valueHeadDim=9))
    b.case("value_head_dim_merged", (2, 3, 6), module=options(6, 2, valueHeadDim=5, outProj=False))
    b.case("head_dims", (2, 5, 7), (2, 3, 7), module=options(7, 3, headDim=5, valueHeadDim=2))
    b.case("head_dims_no_bias", (2, 3, 5), module=options(5, 2, headDim=4, valueHeadDim=3, bias=False))
    b.case("head_dims_kdim_vdim", (2, 3, 5), (2, 7, 3), (2, 7, 4), module=options(5, 2, headDim=3, valueHeadDim=7, kdim=3, vdim=4))
    b.case("head_dims_rank2", (5, 7), module=options(7, 2, headDim=5, valueHeadDim=3), isCausal=True)
    b.case("head_dims_merged_rank2", (5, 10), module=options(10, 1, headDim=4, outProj=False), isCausal=True)
    every = {"numKeyValueHeads": 2, "headDim": 3, "valueHeadDim": 5, "addBiasKv": True, "addZeroAttn": True}
    b.case(
        "head_dims_everything", (2, 3, 7), (2, 5, 7), module=options(7, 4, **every), trace=[*PROJECTIONS, *INSIDE],
        isCausal=True, mask=lambda d: keep_first(draw_mask(d, "additive", (2, 4, 3, 5))),
        padding=lambda d: draw_padding(d, "block", 2, 5),
    )  # fmt: skip
    b.case(
        "head_dims_everything_merged", (1, 3, 7), module=options(7, 4, outProj=False, bias=False, scale=0.5, **every),
    )  # fmt: skip
    for policy in ("zero", "nan", "uniform"):
        b.case(
            f"head_dims_fully_masked_{policy}", (2, 3, 5), module=options(5, 2, numKeyValueHeads=1, headDim=3, valueHeadDim=4),
            fullyMasked=policy, blocks_all=True, padding=lambda d: draw_padding(d, "attend", 2, 3, [2, 0]),
        )  # fmt: skip


def generate():
    b = Builder()
    for part in (self_attention, cross_attention, masks, causal, unbatched, no_output_projection, scales, separate_projections,
                 fully_masked, traces, added_keys, grouped_heads, head_widths):  # fmt: skip
        part(b)
    b.golden.write(common.TESTDATA / "multi_head_attention.safetensors")


if __name__ == "__main__":
    generate()
