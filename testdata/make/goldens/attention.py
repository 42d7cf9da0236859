"""testdata/attention.safetensors: scaled dot-product attention with every option that SEMANTICS.md defines.

The output is compared with F.scaled_dot_product_attention if torch can express the case. The weights, which torch does not return, and cases that
torch cannot express come from the formula in common.py."""

import torch
import torch.nn.functional as F

import common

FILL = -1e9  # used by many implementations instead of blocking


def draw_mask(draw, kind, dims, row=None, p=0.65):
    """Draws a mask of the given kind. Row i keeps key i mod S, so that no query loses all keys by accident, not even with a causal mask; a mask
    without rows keeps key 0. `row` is the index of a row that is masked completely."""
    allowed = draw.coin(*dims, p=p)
    keep = torch.arange(dims[-2]) % dims[-1] if len(dims) > 1 and dims[-2] > 1 else torch.zeros(1, dtype=torch.int64)
    flat = allowed.reshape(-1, len(keep), dims[-1])
    for i, key in enumerate(keep):
        flat[:, i, key] = True
    if row is not None:
        flat[:, row] = False
    return paint(draw, kind, flat.reshape(dims))


def draw_padding(draw, kind, batch, keys, lengths=None):
    """A padding mask: keys past a length are padding. Key 0 is visible unless its length is 0."""
    if lengths is None:
        lengths = [1 + (keys - 1) * (2 * b + 1) // (2 * batch) for b in range(batch)]
    allowed = torch.arange(keys) < torch.tensor(lengths)[:, None]
    return paint(draw, kind, allowed)


def paint(draw, kind, allowed):
    dims = allowed.shape
    if kind == "attend":
        return {"kind": kind, "data": allowed.float()}
    if kind == "block":
        return {"kind": kind, "data": (~allowed).float()}
    if kind == "bias":
        return {"kind": "additive", "data": draw.normal(*dims)}
    if kind == "fill":
        return {"kind": "additive", "data": torch.where(allowed, torch.tensor(0.0), FILL)}
    assert kind == "additive", kind
    return {"kind": kind, "data": torch.where(allowed, draw.normal(*dims), -torch.inf)}


def to_rank4(tensor, rank):
    return tensor if rank == 4 else tensor.unsqueeze(-3) if rank == 3 else tensor[None, None]


def from_rank4(tensor, rank):
    return tensor if rank == 4 else tensor.squeeze(1) if rank == 3 else tensor[0, 0]


def mask_to_rank4(data):
    """[S] | [L,S] | [B,L,S] | [B,H,L,S] -> (B,H,L,S). The first axis of rank 3 is the batch, so the head axis is inserted after it."""
    if data.dim() == 3:
        return data[:, None]
    return data.reshape((1,) * (4 - data.dim()) + tuple(data.shape))


def all_masks(case):
    masks = []
    if "mask" in case:
        masks.append({"kind": case["mask"]["kind"], "data": mask_to_rank4(case["mask"]["data"])})
    if "keyPaddingMask" in case:
        data = case["keyPaddingMask"]["data"][:, None, None, :]
        masks.append({"kind": case["keyPaddingMask"]["kind"], "data": data})
    return masks


class Builder:
    def __init__(self):
        self.golden = common.GoldenFile()

    def case(self, name, query, key, value, *, mask=None, padding=None, inputs=None, blocks_all=False, torch_knows=True,
             **options):
        """query, key, value: dims. mask and padding: functions from a draw to a mask. inputs: function of the draw and the three tensors that changes
        them. blocks_all: some query must have no visible key."""
        draw = common.Draw("attention/" + name)
        tensors = {
            "query": draw.normal(*query),
            "key": draw.normal(*key),
            "value": draw.normal(*value),
        }
        found = {}
        if mask:
            found["mask"] = mask(draw)
        if padding:
            found["keyPaddingMask"] = padding(draw)
        if inputs:
            inputs(draw, tensors, found)
        options = {"needWeights": True, **options}
        policy = options.get("fullyMasked", "zero")
        gqa = options.get("enableGqa", False)
        scale = options.get("scale", query[-1] ** -0.5)
        rank = len(query)

        dims = (*to_rank4(tensors["query"], rank).shape[:3], key[-2])
        allowed, additive = common.combine(dims, all_masks(found), options.get("isCausal", False))
        assert bool((~allowed.any(-1)).any()) == blocks_all, name

        def formula(dtype):
            q, k, v = (to_rank4(tensors[n].to(dtype), rank) for n in ("query", "key", "value"))
            if gqa:
                k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
            steps = common.attention(q, k, v, scale, allowed, additive, policy)
            result = {"output": steps["context"], "weights": steps["weights"]}
            result.update({n: steps[n] for n in options.get("trace", ())})
            if options.get("averageWeights"):
                result["weights"] = result["weights"].mean(1)
            for n in ("output", "weights"):
                result[n] = from_rank4(result[n], rank)
            return result

        def from_torch(dtype):
            q, k, v = (to_rank4(tensors[n].to(dtype), rank) for n in ("query", "key", "value"))
            alone = options.get("isCausal", False) and not found
            one = None
            if found and additive is None:
                one = allowed
            elif found:
                one = torch.where(allowed, additive.to(dtype), -torch.inf)
            out = F.scaled_dot_product_attention(q, k, v, one, is_causal=alone, scale=options.get("scale"), enable_gqa=gqa)
            return from_rank4(out, rank)

        single, double = formula(torch.float32), formula(torch.float64)
        if torch_knows and policy == "zero":
            given = from_torch(torch.float64)
            common.assert_close(double["output"], given, name)
            single["output"], double["output"] = from_torch(torch.float32), given

        case = {"name": name, "op": "scaled_dot_product_attention", "options": options, "inputs": [], "expected": {}}
        for n, tensor in tensors.items():
            case["inputs"].append(n)
            self.golden.add(f"{name}/{n}", tensor)
        for n, tensor in (("mask", "mask"), ("keyPaddingMask", "key_padding_mask")):
            if n in found:
                case[n] = {"kind": found[n]["kind"], "tensor": tensor}
                case["inputs"].append(tensor)
                self.golden.add(f"{name}/{tensor}", found[n]["data"])
        for n in double:
            self.golden.expect(case, n, single[n], double[n])
        self.golden.cases.append(case)


def shapes(b):
    b.case("rank2_one", (1, 1), (1, 1), (1, 1))
    b.case("rank2_3_by_5", (3, 5), (7, 5), (7, 3))
    b.case("rank2_square", (5, 4), (5, 4), (5, 4))
    b.case("rank2_one_key", (5, 7), (1, 7), (1, 5))
    b.case("rank2_one_query", (1, 17), (33, 17), (33, 5))
    b.case("rank3_batch", (3, 7, 5), (3, 17, 5), (3, 17, 7))
    b.case("rank3_33", (2, 33, 17), (2, 17, 17), (2, 17, 33))
    b.case("rank3_65_keys", (2, 3, 7), (2, 65, 7), (2, 65, 17))
    b.case("rank3_head_of_64", (1, 5, 64), (1, 8, 64), (1, 8, 64))
    b.case("rank4_square", (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4))
    b.case("rank4_long_query", (2, 3, 17, 7), (2, 3, 5, 7), (2, 3, 5, 3))
    b.case("rank4_long_key", (2, 2, 3, 5), (2, 2, 33, 5), (2, 2, 33, 1))
    b.case("rank4_65", (1, 1, 65, 17), (1, 1, 65, 17), (1, 1, 65, 5))
    b.case("rank4_width_1", (2, 3, 7, 1), (2, 3, 7, 1), (2, 3, 7, 1))
    b.case("rank4_width_65", (1, 3, 5, 65), (1, 3, 7, 65), (1, 3, 7, 33))
    b.case("empty_batch", (0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 4))
    b.case("no_queries", (2, 0, 4), (2, 5, 4), (2, 5, 3))
    b.case("no_keys_zero", (2, 2, 3, 4), (2, 2, 0, 4), (2, 2, 0, 5), blocks_all=True, torch_knows=False)
    b.case("no_keys_nan", (3, 4), (0, 4), (0, 5), fullyMasked="nan", blocks_all=True)


def scales(b):
    b.case("scale_1", (2, 2, 5, 7), (2, 2, 3, 7), (2, 2, 3, 7), scale=1)
    b.case("scale_small", (2, 5, 7), (2, 17, 7), (2, 17, 3), scale=0.03125)
    b.case("scale_0", (3, 5), (7, 5), (7, 5), scale=0)
    b.case("scale_negative", (3, 5), (7, 5), (7, 5), scale=-0.5)
    b.case("scale_sharp", (1, 2, 7, 5), (1, 2, 17, 5), (1, 2, 17, 5), scale=40)

    def large(draw, tensors, found):
        tensors["query"] *= 2.0**60
        tensors["key"] *= 2.0**60

    b.case("large_scores", (2, 5, 8), (2, 7, 8), (2, 7, 4), inputs=large)


def masks(b):
    dims4, dims3 = (2, 3, 7, 5), (3, 7, 5)
    keys = 9
    q4, k4, v4 = dims4, (2, 3, keys, 5), (2, 3, keys, 4)
    q3, k3, v3 = dims3, (3, keys, 5), (3, keys, 4)
    for kind in ("attend", "block", "additive"):
        for label, dims in {
            "s": (keys,),
            "ls": (7, keys),
            "bls": (2, 7, keys),
            "bhls": (2, 3, 7, keys),
        }.items():
            b.case(f"mask_{kind}_{label}", q4, k4, v4, mask=lambda d, kind=kind, dims=dims: draw_mask(d, kind, dims))
    ones = {
        "1s": (1, keys), "1ls": (1, 7, keys), "b1s": (2, 1, keys), "11ls": (1, 1, 7, keys), "b11s": (2, 1, 1, keys),
        "1h1s": (1, 3, 1, keys), "b1ls": (2, 1, 7, keys), "1hls": (1, 3, 7, keys), "111s": (1, 1, 1, keys),
    }
    kinds = ("attend", "additive", "block")
    for i, (label, dims) in enumerate(ones.items()):
        kind = kinds[i % 3]
        b.case(f"mask_{kind}_{label}", q4, k4, v4, mask=lambda d, kind=kind, dims=dims: draw_mask(d, kind, dims))
    b.case("mask_rank3_bls", q3, k3, v3, mask=lambda d: draw_mask(d, "attend", (3, 7, keys)))
    b.case("mask_rank3_ls", q3, k3, v3, mask=lambda d: draw_mask(d, "block", (7, keys)))
    b.case("mask_rank3_b11s", q3, k3, v3, mask=lambda d: draw_mask(d, "additive", (3, 1, 1, keys)))
    b.case("mask_rank2_s", (7, 5), (9, 5), (9, 4), mask=lambda d: draw_mask(d, "attend", (9,)))
    b.case("mask_rank2_ls", (7, 5), (9, 5), (9, 4), mask=lambda d: draw_mask(d, "additive", (7, 9)))
    b.case("mask_rank2_11ls", (7, 5), (9, 5), (9, 4), mask=lambda d: draw_mask(d, "block", (1, 1, 7, 9)))
    b.case("mask_bias_only", q4, k4, v4, mask=lambda d: draw_mask(d, "bias", (1, 3, 7, keys)))
    b.case("mask_fill_1e9", q4, k4, v4, mask=lambda d: draw_mask(d, "fill", (7, keys)))
    b.case("mask_65_keys", (1, 2, 17, 7), (1, 2, 65, 7), (1, 2, 65, 7), mask=lambda d: draw_mask(d, "attend", (17, 65)))

    def any_nonzero(draw):
        mask = draw_mask(draw, "attend", (7, keys))
        mask["data"] *= 255
        return mask

    b.case("mask_attend_255", q4, k4, v4, mask=any_nonzero)


def padding(b):
    q, k, v = (3, 2, 5, 4), (3, 2, 7, 4), (3, 2, 7, 3)
    for kind in ("attend", "block", "additive", "bias"):
        b.case(f"padding_{kind}", q, k, v, padding=lambda d, kind=kind: draw_padding(d, kind, 3, 7))
    b.case("padding_rank3", (2, 7, 5), (2, 17, 5), (2, 17, 5), padding=lambda d: draw_padding(d, "attend", 2, 17))
    b.case("padding_rank2", (7, 5), (17, 5), (17, 5), padding=lambda d: draw_padding(d, "block", 1, 17, [11]))
    b.case("padding_scattered", q, k, v, padding=scattered)
    for mask in ("attend", "block", "additive"):
        for pad in ("attend", "block", "additive"):
            b.case(
                f"mask_{mask}_padding_{pad}", q, k, v,
                mask=lambda d, mask=mask: keep_first(draw_mask(d, mask, (5, 7))),
                padding=lambda d, pad=pad: draw_padding(d, pad, 3, 7),
            )  # fmt: skip


def scattered(draw):
    mask = draw_mask(draw, "block", (3, 1, 7))
    return {"kind": mask["kind"], "data": mask["data"][:, 0]}


def keep_first(mask):
    """Makes key 0 visible in a mask, so that every query has a key; key 0 is never padding."""
    mask["data"][..., 0] = {"attend": 1, "block": 0, "additive": 0.5}[mask["kind"]]
    return mask


def causal(b):
    b.case("causal_square", (2, 3, 7, 5), (2, 3, 7, 5), (2, 3, 7, 5), isCausal=True)
    b.case("causal_more_keys", (2, 3, 5, 4), (2, 3, 9, 4), (2, 3, 9, 4), isCausal=True)
    b.case("causal_more_queries", (2, 3, 9, 4), (2, 3, 5, 4), (2, 3, 5, 4), isCausal=True)
    b.case("causal_rank2", (17, 5), (17, 5), (17, 3), isCausal=True)
    b.case("causal_rank3_65", (1, 65, 7), (1, 65, 7), (1, 65, 7), isCausal=True, scale=1)
    q, k, v = (2, 3, 7, 5), (2, 3, 9, 5), (2, 3, 9, 4)
    for kind in ("attend", "block", "additive"):
        b.case(f"causal_mask_{kind}", q, k, v, isCausal=True, mask=lambda d, kind=kind: draw_mask(d, kind, (7, 9)))
    b.case("causal_padding", q, k, v, isCausal=True, padding=lambda d: draw_padding(d, "attend", 2, 9))
    b.case(
        "causal_mask_padding", q, k, v, isCausal=True,
        mask=lambda d: keep_first(draw_mask(d, "additive", (2, 3, 7, 9))),
        padding=lambda d: draw_padding(d, "block", 2, 9),
    )  # fmt: skip


def grouped(b):
    b.case("gqa_4_2", (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 3), enableGqa=True)
    b.case("gqa_6_1", (1, 6, 5, 3), (1, 1, 5, 3), (1, 1, 5, 3), enableGqa=True)
    b.case("gqa_equal", (1, 3, 5, 3), (1, 3, 5, 3), (1, 3, 5, 3), enableGqa=True)
    b.case(
        "gqa_causal_mask", (2, 6, 7, 5), (2, 3, 7, 5), (2, 3, 7, 5), enableGqa=True, isCausal=True,
        mask=lambda d: draw_mask(d, "attend", (2, 6, 7, 7)),
    )  # fmt: skip


def averaged(b):
    b.case("average", (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), averageWeights=True)
    b.case("average_causal", (2, 5, 7, 3), (2, 5, 7, 3), (2, 5, 7, 3), averageWeights=True, isCausal=True)
    b.case("average_gqa", (2, 4, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4), averageWeights=True, enableGqa=True)
    b.case(
        "average_mask_per_head", (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), averageWeights=True,
        mask=lambda d: draw_mask(d, "block", (1, 3, 5, 7)),
    )  # fmt: skip


def fully_masked(b):
    q, k, v = (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 3)
    for policy in ("zero", "nan", "uniform"):
        for kind in ("attend", "block", "additive"):
            b.case(
                f"fully_masked_{policy}_{kind}", q, k, v, fullyMasked=policy, blocks_all=True,
                mask=lambda d, kind=kind: draw_mask(d, kind, (5, 7), row=2),
            )  # fmt: skip
        b.case(
            f"fully_masked_{policy}_padding", q, k, v, fullyMasked=policy, blocks_all=True, averageWeights=True,
            padding=lambda d: draw_padding(d, "attend", 2, 7, [4, 0]),
        )  # fmt: skip
        b.case(
            f"fully_masked_{policy}_by_both", (5, 4), (7, 4), (7, 3), fullyMasked=policy, blocks_all=True, isCausal=True,
            padding=lambda d: {"kind": "block", "data": (torch.arange(7) < 3).float()[None]},
        )  # fmt: skip
    b.case(
        "fully_masked_default", q, k, v, blocks_all=True, mask=lambda d: draw_mask(d, "attend", (2, 1, 5, 7), row=0),
    )  # fmt: skip


def not_a_number(b):
    """NaN in a masked key has no effect; NaN in a visible key propagates."""

    def spoil(number):
        def run(draw, tensors, found):
            blocked = found["keyPaddingMask"]["data"] == 0
            tensors["key"][blocked] = number
            tensors["value"][blocked] = number

        return run

    dims = (2, 5, 4), (2, 7, 4), (2, 7, 3)
    pad = {"padding": lambda d: draw_padding(d, "attend", 2, 7), "torch_knows": False}
    b.case("padding_is_nan", *dims, inputs=spoil(torch.nan), **pad)
    b.case("padding_is_infinite", *dims, inputs=spoil(torch.inf), **pad)

    def open_nan(draw, tensors, found):
        tensors["value"][0, 2, 1] = torch.nan
        tensors["query"][1, 3, 0] = torch.nan

    b.case("nan_propagates", *dims, inputs=open_nan, torch_knows=False)

    def open_infinity(draw, tensors, found):
        tensors["query"][:] = tensors["query"].abs() + 0.5
        tensors["key"][0, 2, 1] = torch.inf

    b.case("infinite_score_is_nan_row", *dims, inputs=open_infinity, torch_knows=False)


def traces(b):
    steps = ["scores", "masked_scores", "probabilities", "weighted_values", "context"]
    q, k, v = (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 3)
    b.case("trace", q, k, v, trace=steps)
    b.case("trace_causal", q, k, v, trace=steps, isCausal=True)
    b.case(
        "trace_masks", q, k, v, trace=steps, scale=0.75, averageWeights=True,
        mask=lambda d: keep_first(draw_mask(d, "additive", (2, 3, 5, 7))),
        padding=lambda d: draw_padding(d, "block", 2, 7),
    )  # fmt: skip
    b.case("trace_gqa", (1, 4, 5, 4), (1, 2, 7, 4), (1, 2, 7, 3), trace=steps, enableGqa=True)


def generate():
    b = Builder()
    for part in (shapes, scales, masks, padding, causal, grouped, averaged, fully_masked, not_a_number, traces):
        part(b)
    b.golden.write(common.TESTDATA / "attention.safetensors")


if __name__ == "__main__":
    generate()
