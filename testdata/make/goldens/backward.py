"""testdata/backward.safetensors: gradients by torch.autograd for the cases of functional.safetensors and attention.safetensors, and for further cases
with softcap, window, positions and dropout.

A case has the name of its forward case and one more input, the gradient of the output. The inputs of the forward are not copied; cases without a
forward case store their inputs here."""

import numpy as np
import torch
import torch.nn.functional as F

import attention
import common
import functional
from attention import all_masks, draw_mask, draw_padding, from_rank4, keep_first, to_rank4
from common import Case

POLICIES = ("zero", "nan", "uniform")


def autograd(run, tensors, grad, dtype):
    """run(leaves) returns {'output': …, intermediates by name}; the result is {name: gradient} for each leaf and intermediate."""
    with torch.enable_grad():
        leaves = {n: t.to(dtype).requires_grad_() for n, t in tensors.items()}
        steps = run(leaves)
        output = steps.pop("output")
        assert output.shape == grad.shape, (output.shape, grad.shape)
        wanted = {**leaves, **{n: t for n, t in steps.items() if t.requires_grad}}
        found = torch.autograd.grad(output, list(wanted.values()), grad.to(dtype), allow_unused=True)
    zero = {n: torch.zeros_like(t) for n, t in {**leaves, **steps}.items()}
    return zero | {n: zero[n] if g is None else g for n, g in zip(wanted, found, strict=True)}


class Functions(functional.Builder):
    """Gradients for the cases of functional.py."""

    def case(self, op, name, function, inputs, options):
        # For infinite and very large inputs attn differs from torch on purpose: derivatives have their limits.
        if name.endswith(("_largest", "_infinite")):
            return
        draw = common.Draw("functional/" + name)
        tensors = {n: given if isinstance(given, torch.Tensor) else draw.normal(*given) for n, given in inputs.items()}
        case = Case(self.golden, name, op + "_backward", options=options, of="functional")
        dims = function(torch.float64, *(t.double() for t in tensors.values())).shape
        grad = case.store("grad", common.Draw("backward/" + name).normal(*(dims or (1,))).reshape(dims))
        single, double = (
            autograd(lambda leaves: {"output": function(dtype, *leaves.values())}, tensors, grad, dtype)
            for dtype in (torch.float32, torch.float64)
        )
        for n in tensors:
            case.expect("grad_" + n, single[n], double[n])

    def score_case(self, op, name, query, key, value, *, inner=5, bias=True, mask=None, padding=None, blocks_all=False, **options):
        name = f"{op}_{name}"
        draw = common.Draw("functional/" + name)
        tensors = {n: draw.normal(*dims) for n, dims in (("query", query), ("key", key), ("value", value))}
        if op == "additive_attention":
            dims = {"queryWeight": (inner, query[-1]), "keyWeight": (inner, key[-1]), "scoreWeight": (inner,)}
            dims |= {"bias": (inner,)} if bias else {}
        else:
            dims = {"weight": (query[-1], key[-1])}
        tensors |= {n: draw.normal(*d, std=0.75) for n, d in dims.items()}
        found = {n: make(draw) for n, make in (("mask", mask), ("keyPaddingMask", padding)) if make}
        Gradients(self.golden, name, op, tensors, found, options, of="functional").expect()


class Attention(attention.Builder):
    """Gradients for the cases of attention.py."""

    def case(self, name, query, key, value, *, mask=None, padding=None, inputs=None, blocks_all=False, torch_knows=True, **options):
        draw = common.Draw("attention/" + name)
        tensors = {n: draw.normal(*dims) for n, dims in (("query", query), ("key", key), ("value", value))}
        found = {n: make(draw) for n, make in (("mask", mask), ("keyPaddingMask", padding)) if make}
        if inputs:
            inputs(draw, tensors, found)
        one = Gradients(self.golden, name, "scaled_dot_product_attention", tensors, found, options, of="attention")
        one.expect(torch_knows=torch_knows and options.get("fullyMasked", "zero") == "zero")


class New(attention.Builder):
    """Gradients for cases without a forward in the other files."""

    def case(self, name, query, key, value, *, mask=None, padding=None, **options):
        draw = common.Draw("backward/new/" + name)
        tensors = {n: draw.normal(*dims) for n, dims in (("query", query), ("key", key), ("value", value))}
        found = {n: make(draw) for n, make in (("mask", mask), ("keyPaddingMask", padding)) if make}
        Gradients(self.golden, name, "scaled_dot_product_attention", tensors, found, options).expect()


class Gradients:
    """Gradients for one case of attention."""

    def __init__(self, golden, name, op, tensors, found, options, of=None):
        self.op, self.name, self.tensors, self.options, self.found = op, name, tensors, options, found
        self.rank = tensors["query"].dim()
        names = {"isCausal", "scale", "enableGqa", "fullyMasked", "softcap", "window", "queryOffset", "dropout", "seed"}
        self.case = Case(golden, name, op + "_backward", options={n: v for n, v in options.items() if n in names}, **({"of": of} if of else {}))
        self.grad = self.case.store(
            "grad", common.Draw("backward/" + name).normal(*tensors["query"].shape[:-1], tensors["value"].shape[-1])
        )
        if not of:
            for n, tensor in tensors.items():
                self.case.store(n, tensor)
            for n, stored in (("mask", "mask"), ("keyPaddingMask", "key_padding_mask")):
                if n in found:
                    self.case.json[n] = {"kind": found[n]["kind"], "tensor": stored}
                    self.case.store(stored, found[n]["data"])
        heads = (to_rank4(tensors[n], self.rank) for n in ("query", "key"))
        (self.B, self.H, self.L, _), (_, _, self.S, _) = (t.shape for t in heads)
        self.allowed, self.additive = common.combine((self.B, self.H, self.L, self.S), all_masks(found), False)
        position = torch.arange(self.L)[:, None] + options.get("queryOffset", 0)
        keys = torch.arange(self.S)
        left, right = options.get("window", (-1, -1))
        if options.get("isCausal"):
            self.allowed = self.allowed & (keys <= position)
        if left >= 0:
            self.allowed = self.allowed & (keys >= position - left)
        if right >= 0:
            self.allowed = self.allowed & (keys <= position + right)

    def scores(self, leaves):
        """(B,H,L,S). Masked keys are replaced by 0, because a product with 0 would still propagate their NaN into a gradient."""
        q, k = (to_rank4(leaves[n], self.rank) for n in ("query", "key"))
        if self.options.get("enableGqa"):
            k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        pairs = self.allowed.unsqueeze(-1)
        q, k = q.unsqueeze(-2), torch.where(pairs, k.unsqueeze(-3), 0)
        q = torch.where(pairs, q, 0)
        if self.op == "scaled_dot_product_attention":
            return (q * k).sum(-1) * self.options.get("scale", self.tensors["query"].shape[-1] ** -0.5)
        if self.op == "general_attention":
            return ((q @ leaves["weight"]) * k).sum(-1) * self.options.get("scale", 1)
        hidden = F.linear(q, leaves["queryWeight"]) + F.linear(k, leaves["keyWeight"])
        hidden = hidden + leaves.get("bias", 0)
        return torch.tanh(hidden) @ leaves["scoreWeight"] * self.options.get("scale", 1)

    def steps(self, leaves):
        """The definition of attention. Masked keys are excluded from every product, not multiplied by 0, which would give NaN gradients."""
        v = to_rank4(leaves["value"], self.rank)
        if self.options.get("enableGqa"):
            v = v.repeat_interleave(self.H // v.shape[1], 1)
        steps = {"scores": self.scores(leaves)}
        if cap := self.options.get("softcap"):
            steps["scores"] = cap * torch.tanh(steps["scores"] / cap)
        masked = steps["scores"] if self.additive is None else steps["scores"] + self.additive.to(v.dtype)
        masked = steps["masked_scores"] = torch.where(self.allowed, masked, -torch.inf)
        empty = ~self.allowed.any(-1, keepdim=True)
        if self.S > 0:
            most = torch.where(empty, 0, masked.detach().amax(-1, keepdim=True))
            exp = torch.where(self.allowed, torch.exp(torch.where(self.allowed, masked, 0) - most), 0)
            probabilities = exp / torch.where(empty, 1, exp.sum(-1, keepdim=True))
        else:
            probabilities = masked * 0
        counted = self.allowed
        if self.options.get("fullyMasked") == "uniform":
            probabilities = torch.where(empty, 1 / max(1, self.S), probabilities)
            counted = counted | empty
        steps["probabilities"] = steps["weights"] = probabilities
        if p := self.options.get("dropout"):
            steps["weights"] = torch.where(self.kept(p), probabilities / (1 - p), 0)
        values = torch.where(counted.unsqueeze(-1), v.unsqueeze(-3), 0)
        steps["weighted_values"] = steps["weights"].unsqueeze(-1) * values
        steps["context"] = steps["weighted_values"].sum(-2)
        steps["output"] = from_rank4(steps["context"], self.rank)
        return steps

    def kept(self, p):
        """The weights that dropout keeps, by the generator in SEMANTICS.md: (seed, step, site, layer) is the key, the position is the counter."""
        seed = self.options.get("seed", 0)
        words = philox([np.array(0), np.array(0), np.array(0), np.array(0)], (seed & 0xFFFFFFFF, seed >> 32))
        key = int(words[0]), int(words[1])
        b, h, i, j = np.indices((self.B, self.H, self.L, self.S))
        drawn = np.stack(philox([j // 4, i, h, b], key), -1)
        word = np.take_along_axis(drawn, (j % 4)[..., None], -1)[..., 0]
        return torch.from_numpy(word >> np.uint64(8) >= np.uint64(np.ceil(p * 2**24)))

    def run(self, dtype):
        found = autograd(self.steps, self.tensors, self.grad, dtype)
        counted = self.allowed
        if self.options.get("fullyMasked") == "uniform":
            counted = counted | ~counted.any(-1, keepdim=True)
        found["weighted_values"] = torch.where(counted.unsqueeze(-1), found["weighted_values"], 0)
        if self.options.get("fullyMasked") == "nan":
            empty = ~self.allowed.any(-1, keepdim=True)
            for n in ("scores", "masked_scores", "probabilities", "weights"):
                found[n] = torch.where(empty, torch.nan, found[n])
            found["weighted_values"] = torch.where(empty.unsqueeze(-1), torch.nan, found["weighted_values"])
            for n in ("weight", "queryWeight", "scoreWeight", "bias"):
                if n in self.tensors and bool(empty.any()):
                    found[n] = torch.full_like(found[n], torch.nan)
            found["query"] = from_rank4(torch.where(empty, torch.nan, to_rank4(found["query"], self.rank)), self.rank)
        return found

    def from_torch(self, dtype):
        """Gradients of F.scaled_dot_product_attention, or None if it cannot express the case."""
        mask = self.allowed if self.additive is None else torch.where(self.allowed, self.additive.to(dtype), -torch.inf)

        def run(leaves):
            q, k, v = (to_rank4(leaves[n], self.rank) for n in ("query", "key", "value"))
            out = F.scaled_dot_product_attention(q, k, v, mask, scale=self.options.get("scale"), enable_gqa=self.options.get("enableGqa", False))
            return {"output": from_rank4(out, self.rank)}

        return autograd(run, self.tensors, self.grad, dtype)

    def expect(self, torch_knows=False):
        single, double = self.run(torch.float32), self.run(torch.float64)
        if torch_knows:
            given = self.from_torch(torch.float64)
            for n in self.tensors:
                common.assert_close(double[n], given[n], f"{self.name} {n}", 1e-11)
        snake = {"queryWeight": "query_weight", "keyWeight": "key_weight", "scoreWeight": "score_weight"}
        for n in self.tensors:
            self.case.expect("grad_" + snake.get(n, n), single[n], double[n])
        if "trace" in self.options:
            for n in ("scores", "masked_scores", "probabilities", "weights", "weighted_values", "context"):
                self.case.expect("trace." + n, *(self.seen(found[n]) for found in (single, double)))

    def seen(self, trace):
        """Removes the dimensions that the inputs do not have."""
        return trace if self.rank == 4 else trace.squeeze(1) if self.rank == 3 else trace[0, 0]


def philox(counter, key):
    """Philox-4x32-10 (Salmon et al. 2011) for arrays."""
    low = np.uint64(0xFFFFFFFF)
    c, k = [np.asarray(x).astype(np.uint64) for x in counter], list(key)
    for _ in range(10):
        one, two = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        k0, k1 = np.uint64(k[0]), np.uint64(k[1])
        c = [(two >> np.uint64(32)) ^ c[1] ^ k0, two & low, (one >> np.uint64(32)) ^ c[3] ^ k1, one & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def new(b):
    every = ["every"]
    q, k, v = (2, 3, 7, 5), (2, 3, 9, 5), (2, 3, 9, 4)
    b.case("softcap", q, k, v, softcap=1.5, trace=every)
    b.case("softcap_sharp", q, k, v, softcap=0.25, scale=2)
    b.case("softcap_mask", q, k, v, softcap=2, mask=lambda d: draw_mask(d, "additive", (2, 3, 7, 9)), trace=every)
    for left, right in ((0, 0), (2, -1), (-1, 1), (3, 2)):
        b.case(f"window_{left}_{right}".replace("-", "minus_"), q, k, v, window=[left, right])
    b.case("window_offset", q, k, v, window=[2, 1], queryOffset=2, trace=every)
    b.case("window_past_all_keys", q, k, v, window=[1, 1], queryOffset=5)
    b.case("causal_offset", q, k, v, isCausal=True, queryOffset=2)
    b.case("causal_offset_before_all", q, k, v, isCausal=True, queryOffset=-3)
    b.case("causal_window_padding", q, k, v, isCausal=True, window=[3, -1], padding=lambda d: draw_padding(d, "attend", 2, 9))
    b.case("dropout", q, k, v, dropout=0.3, seed=7, trace=every)
    b.case("dropout_half_causal", q, k, v, dropout=0.5, seed=2**40 + 3, isCausal=True)
    b.case("dropout_gqa_mask", (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 3), dropout=0.1, enableGqa=True,
           mask=lambda d: draw_mask(d, "block", (5, 7)))  # fmt: skip
    b.case("everything", (2, 4, 7, 5), (2, 2, 9, 5), (2, 2, 9, 4), enableGqa=True, softcap=3, window=[4, 3], queryOffset=1, dropout=0.2, seed=1,
           isCausal=True, scale=0.7, mask=lambda d: keep_first(draw_mask(d, "additive", (2, 4, 7, 9))),
           padding=lambda d: draw_padding(d, "block", 2, 9))  # fmt: skip
    for policy in POLICIES:
        b.case(f"trace_fully_masked_{policy}", (1, 2, 5, 4), (1, 2, 7, 4), (1, 2, 7, 3), fullyMasked=policy, trace=every,
               mask=lambda d: draw_mask(d, "attend", (5, 7), row=2))  # fmt: skip
        b.case(f"fully_masked_softcap_dropout_{policy}", q, k, v, fullyMasked=policy, softcap=2, dropout=0.25, window=[2, 2], queryOffset=9)


def generate():
    golden = common.GoldenFile()
    functions, forwards, others = Functions(), Attention(), New()
    functions.golden = forwards.golden = others.golden = golden
    for part in (functional.linear, functional.softmax, functional.layer_norm, functional.rms_norm, functional.activation,
                 functional.apply_rotary, functional.score_functions):  # fmt: skip
        part(functions)
    for part in (attention.shapes, attention.scales, attention.masks, attention.padding, attention.causal, attention.grouped,
                 attention.averaged, attention.fully_masked, attention.not_a_number, attention.traces):  # fmt: skip
        part(forwards)
    new(others)
    golden.write(common.TESTDATA / "backward.safetensors", limit=1_000_000)


if __name__ == "__main__":
    generate()
