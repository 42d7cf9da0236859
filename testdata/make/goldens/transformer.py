"""testdata/transformer.safetensors: encoder layers, encoders, classifiers and embeddings.

The numbers are those of nn.TransformerEncoderLayer and nn.TransformerEncoder, also for the activations, RMS norms and gated feed-forward layers that
they accept as modules. Results that torch's layers do not return (attentions, intermediates of a layer) or cannot express (another policy for queries
without keys) come from the formula below, which must agree with torch on everything else."""

import contextlib
import math

import torch
import torch.nn.functional as F

import common
from attention import draw_mask, draw_padding, keep_first, mask_to_rank4
from common import Case
from functional import ACTIVATIONS, sinusoidal_table
from multi_head_attention import by_formula, torch_masks

LARGE = 160  # larger state tensors are generated from a seed
ATTENTION = ("q_proj", "k_proj", "v_proj", "q", "k", "v", "scores", "masked_scores", "probabilities", "weights", "context",
             "merged", "output")  # fmt: skip
LAYER = ("attn_residual", "norm1", "ff_hidden", "ff_output", "ff_residual", "norm2")


@contextlib.contextmanager
def slow_path():
    """Disables torch's fused encoder layer, which is another implementation and whose nested tensors write zeros over padding."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def options(width, heads, hidden, **more):
    return {"dModel": width, "nhead": heads, "dimFeedforward": hidden, **more}


# ---------------------------------------------------------------- state


def norm_shapes(name, module):
    width = module["dModel"]
    shapes = {f"{name}.weight": (width,)}
    if module.get("bias", True) and module.get("norm") != "rms_norm":
        shapes[f"{name}.bias"] = (width,)
    return shapes


def layer_shapes(module):
    width, hidden, bias = module["dModel"], module["dimFeedforward"], module.get("bias", True)
    if "numKeyValueHeads" in module:
        shared = width // module["nhead"] * module["numKeyValueHeads"]
        linears = {"self_attn.q_proj.": (width, width), "self_attn.k_proj.": (shared, width), "self_attn.v_proj.": (shared, width)}
    else:
        linears = {"self_attn.in_proj_": (3 * width, width)}
    linears |= {"self_attn.out_proj.": (width, width), "linear1.": (hidden, width)}
    if module.get("gated"):
        linears["linear_gate."] = (hidden, width)
    linears["linear2."] = (width, hidden)
    shapes = {}
    for name, dims in linears.items():
        shapes[f"{name}weight"] = dims
        if bias:
            shapes[f"{name}bias"] = dims[:1]
    return {**shapes, **norm_shapes("norm1", module), **norm_shapes("norm2", module)}


def encoder_shapes(module):
    shapes = {f"layers.{i}.{n}": dims for i in range(module["numLayers"]) for n, dims in layer_shapes(module).items()}
    if module.get("finalNorm"):
        shapes.update(norm_shapes("norm", module))
    return shapes


def draw_state(case, draw, shapes):
    """Draws a state. Biases are not zero and norms not one, otherwise a missing one would go unnoticed."""
    state = {}
    for name, dims in shapes.items():
        is_norm = "norm" in name.split(".")[-2]
        std = 0.25 if is_norm else 0.5 if len(dims) == 1 else dims[1] ** -0.5
        if math.prod(dims) > LARGE:
            factor = 2.0 ** round(math.log2(std * 3**0.5))
            state[name] = case.generate(f"state.{name}", "uniform", draw.next_seed(), dims, factor)
        else:
            value = draw.normal(*dims, std=std)
            state[name] = case.store(f"state.{name}", value + 1 if is_norm and name.endswith("weight") else value)
    return state


def inside(state, prefix):
    return {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}


# ---------------------------------------------------------------- the formula


def normalise(module, state, name, x):
    weight, bias = state[f"{name}.weight"], state.get(f"{name}.bias")
    eps = module.get("layerNormEps", 1e-5)
    if module.get("norm") == "rms_norm":
        return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
    centred = x - x.mean(-1, keepdim=True)
    y = centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
    return y if bias is None else y + bias


def feed_forward(module, state, x):
    def linear(name, x):
        return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))

    activate = ACTIVATIONS[module.get("activation", "relu")]
    hidden = linear("linear1", x)
    hidden = activate(linear("linear_gate", x)) * hidden if module.get("gated") else activate(hidden)
    return hidden, linear("linear2", hidden)


def layer_steps(module, state, x, allowed, additive, policy):
    """All intermediates of one layer by their trace names, and its output."""
    attention = {"embedDim": module["dModel"], "numHeads": module["nhead"]}
    attention |= {n: module[n] for n in ("numKeyValueHeads", "rotary", "softcap") if n in module}
    scale = (module["dModel"] // module["nhead"]) ** -0.5
    before = module.get("normFirst", False)
    steps = {"norm1": normalise(module, state, "norm1", x)} if before else {}
    seen = steps["norm1"] if before else x
    steps.update(by_formula(attention, inside(state, "self_attn."), (seen,) * 3, scale, allowed, additive, policy, x.dtype))
    steps["attn_residual"] = x + steps["output"]
    if before:
        steps["norm2"] = normalise(module, state, "norm2", steps["attn_residual"])
        steps["ff_hidden"], steps["ff_output"] = feed_forward(module, state, steps["norm2"])
        steps["ff_residual"] = steps["attn_residual"] + steps["ff_output"]
        return steps, steps["ff_residual"]
    steps["norm1"] = normalise(module, state, "norm1", steps["attn_residual"])
    steps["ff_hidden"], steps["ff_output"] = feed_forward(module, state, steps["norm1"])
    steps["ff_residual"] = steps["norm1"] + steps["ff_output"]
    steps["norm2"] = normalise(module, state, "norm2", steps["ff_residual"])
    return steps, steps["norm2"]


def encoder_steps(module, state, x, allowed, additive, policy):
    """All results of an encoder by their names in the golden file."""
    result = {"hiddenStates.0": x}
    for i in range(module["numLayers"]):
        steps, x = layer_steps(module, inside(state, f"layers.{i}."), x, allowed, additive, policy)
        result.update({f"trace.{i}.{n}": t for n, t in steps.items()})
        result[f"attentions.{i}"] = steps["weights"]
        result[f"hiddenStates.{i + 1}"] = x
    if module.get("finalNorm"):
        result[f"hiddenStates.{module['numLayers']}"] = x = normalise(module, state, "norm", x)
    result["output"] = x
    return result


def pool(module, output, present, policy):
    """(B,L,E) -> (B,E). present (B,L): positions that are not padding."""
    kind = module.get("pooling", "none")
    if kind == "none":
        return output
    if kind == "cls":
        return output[:, 0]
    empty = ~present.any(-1, keepdim=True)
    if policy == "uniform":
        present = present | empty
    counted = present[..., None]
    if kind == "mean":
        pooled = torch.where(counted, output, 0).sum(1) / present.sum(-1, keepdim=True).clamp(min=1)
    else:
        pooled = torch.where(counted, output, -torch.inf).amax(1)
    return torch.where(empty & ~present.any(-1, keepdim=True), torch.nan if policy == "nan" else 0, pooled)


# ---------------------------------------------------------------- torch's modules


class Gated(torch.nn.Module):
    """Replaces linear1 of torch's layer, so that the activation after it does nothing."""

    def __init__(self, module, dtype):
        super().__init__()
        dims, bias = (module["dModel"], module["dimFeedforward"]), module.get("bias", True)
        self.linear1 = torch.nn.Linear(*dims, bias=bias, dtype=dtype)
        self.linear_gate = torch.nn.Linear(*dims, bias=bias, dtype=dtype)
        self.activate = ACTIVATIONS[module.get("activation", "relu")]

    def forward(self, x):
        return self.activate(self.linear_gate(x)) * self.linear1(x)


def torch_norm(module, dtype):
    eps = module.get("layerNormEps", 1e-5)
    if module.get("norm") == "rms_norm":
        return torch.nn.RMSNorm(module["dModel"], eps=eps, dtype=dtype)
    return torch.nn.LayerNorm(module["dModel"], eps=eps, bias=module.get("bias", True), dtype=dtype)


def torch_layer(module, dtype):
    layer = torch.nn.TransformerEncoderLayer(
        module["dModel"],
        module["nhead"],
        module["dimFeedforward"],
        dropout=module.get("dropout", 0.1),
        activation=ACTIVATIONS[module.get("activation", "relu")],
        layer_norm_eps=module.get("layerNormEps", 1e-5),
        batch_first=True,
        norm_first=module.get("normFirst", False),
        bias=module.get("bias", True),
        dtype=dtype,
    )
    if module.get("norm") == "rms_norm":
        layer.norm1, layer.norm2 = torch_norm(module, dtype), torch_norm(module, dtype)
    if module.get("gated"):
        layer.linear1, layer.activation = Gated(module, dtype), torch.nn.Identity()
    return layer


def torch_results(op, module, state, x, masks, dtype):
    """Results under the names of encoder_steps, as far as torch's modules return them."""
    layer = torch_layer(module, dtype)
    if op == "transformer_encoder_layer":
        whole = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([layer])})
    else:
        norm = torch_norm(module, dtype) if module.get("finalNorm") else None
        whole = torch.nn.TransformerEncoder(layer, module["numLayers"], norm, enable_nested_tensor=False)
    names = {n: n for n in state}
    if module.get("gated"):
        names = {n: n.replace("linear1.", "linear1.linear1.").replace("linear_gate.", "linear1.linear_gate.") for n in state}
    whole.load_state_dict({names[n]: t.to(dtype) for n, t in state.items()})
    whole.eval()

    result = {"hiddenStates.0": x.to(dtype)}

    def keep(name):
        def hook(_, given, output):
            result[name] = output[0] if isinstance(output, tuple) else output

        return hook

    for i, one in enumerate(whole["layers"] if op == "transformer_encoder_layer" else whole.layers):
        for part, name in (("self_attn", "output"), ("norm1", "norm1"), ("linear2", "ff_output"), ("norm2", "norm2")):
            getattr(one, part).register_forward_hook(keep(f"trace.{i}.{name}"))
        one.register_forward_hook(keep(f"hiddenStates.{i + 1}"))
    attn, padding = masks
    with slow_path():
        if op == "transformer_encoder_layer":
            result["output"] = whole["layers"][0](x.to(dtype), src_mask=attn, src_key_padding_mask=padding)
        else:
            result["output"] = whole(x.to(dtype), mask=attn, src_key_padding_mask=padding)
    result[f"hiddenStates.{module.get('numLayers', 1)}"] = result["output"]
    return result


# ---------------------------------------------------------------- cases


class Drawn:
    """Draws the inputs of a case and stores them in it."""

    def __init__(self, case, op, name, x, module, mask, padding, inputs, sentences, options):
        draw = common.Draw("transformer/" + name)
        flat = len(x) == 2
        found = {}
        for n, make in (("mask", mask), ("keyPaddingMask", padding)):
            if make:
                found[n] = make(draw)
        if sentences is None:
            if math.prod(x) > LARGE:
                given = case.generate("x", "normal", draw.next_seed(), x)
            else:
                given = draw.normal(*x)
                if inputs:
                    inputs(given, found)
                given = case.store("x", given)
            batched = given[None] if flat else given
        for n, tensor in (("mask", "mask"), ("keyPaddingMask", "key_padding_mask")):
            if n in found:
                case.json[n] = {"kind": found[n]["kind"], "tensor": tensor}
                case.store(tensor, found[n]["data"])

        if op == "transformer_encoder_layer":
            state = draw_state(case, draw, layer_shapes(module))
            encoder = {f"layers.0.{n}": t for n, t in state.items()}
            full = {**module, "numLayers": 1}
        else:
            shapes = encoder_shapes(module)
            if op != "transformer_encoder":
                head = {"classifier.weight": (module["numClasses"], module["dModel"]), "classifier.bias": (module["numClasses"],)}
                shapes = {**{f"encoder.{n}": dims for n, dims in shapes.items()}, **head}
            if sentences is not None:
                shapes["embedding.weight"] = (module["embedding"]["numEmbeddings"], module["embedding"]["embeddingDim"])
            state = draw_state(case, draw, shapes)
            encoder, full = (state if op == "transformer_encoder" else inside(state, "encoder.")), module

        dims = (*((1, *x) if flat else x)[:2], x[-2])
        dims = (dims[0], module["nhead"], *dims[1:])
        masks = []
        if "mask" in found:
            masks.append({"kind": found["mask"]["kind"], "data": mask_to_rank4(found["mask"]["data"])})
        present = torch.ones(dims[0], dims[2], dtype=torch.bool)
        if "keyPaddingMask" in found:
            pad = found["keyPaddingMask"]
            masks.append({"kind": pad["kind"], "data": pad["data"][:, None, None, :]})
            present = common.mask_terms(pad)[0]
        causal, policy = options.get("isCausal", False), options.get("fullyMasked", "zero")
        allowed, additive = common.combine(dims, masks, causal)
        distance = torch.arange(dims[-1]) - torch.arange(dims[-2])[:, None]
        for side, most in zip((-distance, distance), module.get("window", (-1, -1))):
            if most >= 0:
                allowed = allowed & (side <= most)
        self.flat, self.found, self.state, self.encoder, self.module = flat, found, state, encoder, full
        self.x = None if sentences is not None else batched
        self.sentences, self.dims, self.masks, self.causal, self.policy = sentences, dims, masks, causal, policy
        self.allowed, self.additive, self.present = allowed, additive, present

    def start(self, dtype):
        if self.sentences is None:
            return self.x.to(dtype)
        table = self.state["embedding.weight"]
        return table.to(dtype)[self.sentences] + sinusoidal_table(self.sentences.shape[1], table.shape[1]).to(dtype)

    def torch_masks(self, dtype):
        if not self.masks and not self.causal:
            return None, None
        return torch_masks(self.found, self.causal, self.dims, self.allowed, self.additive, dtype)


class Builder:
    def __init__(self):
        self.golden = common.GoldenFile()

    def case(self, op, name, x, module, *, mask=None, padding=None, inputs=None, blocks_all=False, sentences=None, **options):
        """x: dims. module: options of the constructor; options: those of forward. inputs: function of x and the masks that changes x. sentences: x is
        the embedding of these (B,L) ids plus the sinusoidal positions."""
        case = Case(self.golden, name, op, module=module, options=options, state=[])
        of = Drawn(case, op, name, x, module, mask, padding, inputs, sentences, options)
        assert bool((~of.allowed.any(-1)).any()) == blocks_all, name

        def formula(dtype):
            state = {n: t.to(dtype) for n, t in of.encoder.items()}
            return encoder_steps(of.module, state, of.start(dtype), of.allowed, of.additive, of.policy)

        def from_torch(dtype):
            return torch_results(op, of.module, of.encoder, of.start(dtype), of.torch_masks(dtype), dtype)

        def finish(results, dtype):
            if "classifier.weight" in of.state:
                pooled = pool(module, results["output"], of.present, of.policy)
                results["logits"] = F.linear(pooled, of.state["classifier.weight"].to(dtype), of.state["classifier.bias"].to(dtype))
            return {n: t[0] for n, t in results.items()} if of.flat else results

        single, double = formula(torch.float32), formula(torch.float64)
        again = {}
        if all(of.dims) and not inputs and (not blocks_all or of.policy == "zero"):
            again = from_torch(torch.float64)
            for n, t in again.items():
                common.assert_close(double[n], t, f"{name}: {n}")
            double, again = {**double, **again}, single
            single = {**single, **from_torch(torch.float32)}
        single, double, again = (
            finish(results, dtype) if results else {}
            for results, dtype in ((single, torch.float32), (double, torch.float64), (again, torch.float32))
        )
        for n in self.wanted(op, of.module, options):
            case.expect(n, single[n], double[n])
            if n in again:  # well conditioned: another order of sums in float32 stays within the tolerance
                common.assert_close(again[n], double[n], f"{name}: {n} in float32", 2 * case.json["expected"][n] + 1e-6)

    @staticmethod
    def wanted(op, module, options):
        names, layers = ["output"], range(module["numLayers"])
        if op in ("transformer_classifier", "sentiment_classifier"):
            names.append("logits")
        if options.get("outputAttentions"):
            names += [f"attentions.{i}" for i in layers]
        if options.get("outputHiddenStates"):
            names += [f"hiddenStates.{i}" for i in (*layers, module["numLayers"])]
        if "trace" in options:
            trace = options["trace"]
            names += [f"trace.{i}.{n}" for i in trace.get("layers", layers) for n in trace.get("names", (*ATTENTION, *LAYER))]
        return names

    def layer(self, name, x, module, **more):
        self.case("transformer_encoder_layer", "layer_" + name, x, module, **more)

    def encoder(self, name, x, module, **more):
        self.case("transformer_encoder", "encoder_" + name, x, module, **more)

    def classifier(self, name, x, module, **more):
        self.case("transformer_classifier", name, x, module, **more)


BOTH = (("post", {}), ("pre", {"normFirst": True}))


def kinds(b):
    """Every kind of layer, with the norms before and after."""
    x = (2, 3, 6)
    for label, order in BOTH:
        for activation in ACTIVATIONS:
            named = {} if activation == "relu" and label == "post" else {"activation": activation}
            b.layer(f"{label}_{activation}", x, options(6, 2, 8, dropout=0.1, **named, **order))
        b.layer(f"{label}_no_bias", x, options(6, 3, 8, bias=False, **order))
        b.layer(f"{label}_rms_norm", x, options(6, 2, 8, norm="rms_norm", **order))
        b.layer(f"{label}_rms_norm_no_bias", x, options(6, 2, 8, norm="rms_norm", bias=False, activation="gelu", **order))
        b.layer(f"{label}_gated_silu", x, options(6, 2, 8, gated=True, activation="silu", **order))
        b.layer(f"{label}_gated_gelu_no_bias", x, options(6, 2, 5, gated=True, activation="gelu", bias=False, **order))
        b.layer(f"{label}_eps", x, options(6, 2, 8, layerNormEps=0.25, **order))
        b.layer(f"{label}_eps_1e_12", x, options(6, 2, 8, layerNormEps=1e-12, activation="gelu", **order))
        b.layer(f"{label}_rms_norm_eps", x, options(6, 2, 8, norm="rms_norm", layerNormEps=0.125, dropout=0, **order))
        b.layer(f"{label}_rank2", (5, 6), options(6, 2, 8, **order), isCausal=True, outputAttentions=True, outputHiddenStates=True)
    b.layer("llama", (1, 5, 8), options(8, 2, 12, normFirst=True, norm="rms_norm", gated=True, activation="silu", bias=False),
            isCausal=True, outputAttentions=True)  # fmt: skip
    b.layer("defaults", (1, 3, 4), {"dModel": 4, "nhead": 2, "dimFeedforward": 7, "normFirst": False, "bias": True, "gated": False,
                                    "norm": "layer_norm", "activation": "relu", "layerNormEps": 1e-5, "dropout": 0.5})  # fmt: skip


def sizes(b):
    b.layer("one", (1, 1, 1), options(1, 1, 1))
    b.layer("one_pre", (1, 1, 1), options(1, 1, 1, normFirst=True))
    b.layer("width_1", (2, 3, 1), options(1, 1, 3, normFirst=True, norm="rms_norm"), outputAttentions=True)
    b.layer("width_3", (2, 5, 3), options(3, 3, 7), outputAttentions=True)
    b.layer("width_5", (3, 7, 5), options(5, 1, 17, normFirst=True), outputAttentions=True)
    b.layer("width_7", (1, 17, 7), options(7, 7, 3), outputAttentions=True)
    b.layer("width_17", (1, 3, 17), options(17, 1, 33, activation="gelu"))
    b.layer("width_33", (1, 5, 33), options(33, 3, 65, normFirst=True), outputAttentions=True)
    b.layer("width_65", (1, 3, 65), options(65, 5, 17, activation="gelu"))
    b.layer("width_129", (1, 3, 129), options(129, 3, 33, normFirst=True), outputAttentions=True)
    b.layer("length_1", (3, 1, 6), options(6, 2, 5), outputAttentions=True)
    b.layer("length_33", (2, 33, 4), options(4, 2, 5), outputAttentions=True)
    b.layer("length_65", (1, 65, 5), options(5, 1, 7, normFirst=True), isCausal=True, outputAttentions=True)
    b.layer("length_129", (1, 129, 3), options(3, 1, 5))
    b.layer("batch_17", (17, 3, 4), options(4, 2, 3), outputAttentions=True)
    b.layer("batch_65", (65, 1, 3), options(3, 1, 5))
    b.layer("batch_129", (129, 2, 2), options(2, 2, 3, activation="gelu", normFirst=True))
    b.layer("hidden_129", (1, 3, 3), options(3, 1, 129, activation="silu", gated=True))
    b.layer("hidden_1", (2, 3, 4), options(4, 2, 1, gated=True))
    b.layer("empty_batch", (0, 3, 4), options(4, 2, 3), outputAttentions=True, outputHiddenStates=True)
    b.layer("no_tokens", (2, 0, 4), options(4, 2, 3, normFirst=True), outputAttentions=True)


def masks(b):
    x, two = (2, 5, 4), options(4, 2, 6)
    forms = {
        "s": (5,), "ls": (5, 5), "b1s": (2, 1, 5), "bls": (2, 5, 5), "1ls": (1, 5, 5), "b11s": (2, 1, 1, 5), "11ls": (1, 1, 5, 5),
        "bhls": (2, 2, 5, 5), "1h1s": (1, 2, 1, 5), "b1ls": (2, 1, 5, 5),
    }  # fmt: skip
    for i, (label, dims) in enumerate(forms.items()):
        for kind in ("attend", "block", "additive") if label in ("ls", "b11s", "bls") else (("block", "additive", "attend")[i % 3],):
            module = {**two, "normFirst": True} if i % 2 else two
            b.layer(
                f"mask_{kind}_{label}", x, module, outputAttentions=True,
                mask=lambda d, kind=kind, dims=dims: draw_mask(d, kind, dims),
            )  # fmt: skip
    for i, kind in enumerate(("attend", "block", "additive", "bias")):
        module = {**two, "normFirst": True} if i % 2 else two
        b.layer(f"padding_{kind}", x, module, outputAttentions=True, padding=lambda d, kind=kind: draw_padding(d, kind, 2, 5))
    b.layer("causal", x, two, isCausal=True, outputAttentions=True)
    b.layer("causal_padding", x, two, isCausal=True, padding=lambda d: draw_padding(d, "block", 2, 5))
    b.layer("causal_mask", x, two, isCausal=True, mask=lambda d: draw_mask(d, "additive", (2, 2, 5, 5)))
    for mask, pad in (("additive", "block"), ("attend", "attend"), ("block", "additive")):
        b.layer(
            f"mask_{mask}_padding_{pad}", x, {**two, "activation": "gelu"}, outputAttentions=True,
            mask=lambda d, mask=mask: keep_first(draw_mask(d, mask, (5, 5))),
            padding=lambda d, pad=pad: draw_padding(d, pad, 2, 5),
        )  # fmt: skip
    b.layer("mask_rank2", (5, 4), two, mask=lambda d: keep_first(draw_mask(d, "block", (5, 5))),
            padding=lambda d: draw_padding(d, "attend", 1, 5, [3]))  # fmt: skip
    for policy in ("zero", "nan", "uniform"):
        b.layer(
            f"fully_masked_{policy}", x, two, fullyMasked=policy, blocks_all=True, outputAttentions=True,
            mask=lambda d: draw_mask(d, "attend", (5, 5), row=2),
        )  # fmt: skip
        b.layer(
            f"fully_masked_{policy}_padding", x, {**two, "normFirst": True}, fullyMasked=policy, blocks_all=True,
            outputAttentions=True, padding=lambda d: draw_padding(d, "attend", 2, 5, [4, 0]),
        )  # fmt: skip
    pad = {"padding": lambda d: draw_padding(d, "attend", 2, 5)}
    b.layer("padding_is_nan", x, two, inputs=spoil(torch.nan), **pad)
    b.layer("padding_is_infinite_pre", x, {**two, "normFirst": True}, inputs=spoil(torch.inf), **pad)


def spoil(number):
    """Fills padded tokens with NaN or infinity. Their rows of the result contain them as well, but no other row may."""

    def run(x, found):
        x[~common.mask_terms(found["keyPaddingMask"])[0]] = number

    return run


def traces(b):
    every = (*ATTENTION, "weighted_values", *LAYER)
    x = (1, 3, 4)
    for label, order in BOTH:
        b.layer(f"trace_{label}", x, options(4, 2, 5, **order), trace={"layers": [0], "names": list(every)}, outputHiddenStates=True)
        b.encoder(
            f"trace_{label}", (2, 3, 4), options(4, 2, 5, numLayers=2, finalNorm=True, activation="gelu", **order), isCausal=True,
            trace={"names": ["norm1", "norm2", "attn_residual", "ff_residual", "output", "weights", "q"]}, outputHiddenStates=True,
        )  # fmt: skip
    b.layer(
        "trace_gated", x, options(4, 1, 5, gated=True, activation="silu", norm="rms_norm", normFirst=True, bias=False),
        trace={"names": list(LAYER)},
    )  # fmt: skip
    b.layer(
        "trace_masks", (2, 3, 4), options(4, 2, 5), trace={"layers": [0], "names": list(ATTENTION)}, isCausal=True,
        mask=lambda d: keep_first(draw_mask(d, "additive", (2, 1, 1, 3))), padding=lambda d: draw_padding(d, "block", 2, 3),
    )  # fmt: skip
    b.encoder("trace_one_of_three", (1, 3, 4), options(4, 2, 5, numLayers=3), trace={"layers": [1]})
    b.encoder("trace_two_of_three", (2, 3, 4), options(4, 2, 5, numLayers=3, normFirst=True), outputAttentions=True,
              trace={"layers": [2, 0], "names": ["ff_hidden", "merged", "scores"]})  # fmt: skip
    b.encoder("trace_rank2", (3, 4), options(4, 2, 5, numLayers=2), trace={"layers": [1], "names": list(every)}, outputAttentions=True,
              outputHiddenStates=True)  # fmt: skip


def encoders(b):
    x = (2, 5, 6)
    seen = {"outputAttentions": True, "outputHiddenStates": True}
    for label, order in BOTH:
        b.encoder(f"{label}", x, options(6, 2, 8, numLayers=2, **order), **seen)
        b.encoder(f"{label}_final_norm", x, options(6, 2, 8, numLayers=2, finalNorm=True, activation="gelu", **order), **seen)
        b.encoder(f"{label}_rms_norm_gated", x, options(6, 3, 8, numLayers=2, finalNorm=True, norm="rms_norm", gated=True,
                                                        activation="silu", **order))  # fmt: skip
        b.encoder(f"{label}_no_bias", x, options(6, 2, 8, numLayers=2, finalNorm=True, bias=False, layerNormEps=1e-6, **order))
        b.encoder(
            f"{label}_padding", x, options(6, 2, 8, numLayers=2, dropout=0.1, **order), **seen,
            padding=lambda d: draw_padding(d, "block", 2, 5),
        )  # fmt: skip
        b.encoder(
            f"{label}_causal_mask", x, options(6, 2, 8, numLayers=2, finalNorm=True, **order), isCausal=True, outputAttentions=True,
            mask=lambda d: draw_mask(d, "additive", (2, 5, 5)),
        )  # fmt: skip
        for policy in ("zero", "nan", "uniform"):
            b.encoder(
                f"{label}_fully_masked_{policy}", (2, 3, 4), options(4, 2, 5, numLayers=2, **order), fullyMasked=policy, blocks_all=True,
                outputAttentions=True, padding=lambda d: draw_padding(d, "attend", 2, 3, [2, 0]),
            )  # fmt: skip
    b.encoder("one_layer_final_norm", (1, 7, 3), options(3, 1, 5, numLayers=1, finalNorm=True), **seen)
    b.encoder("six_layers", (2, 5, 8), options(8, 4, 16, numLayers=6, activation="gelu"), outputHiddenStates=True)
    b.encoder("six_layers_pre", (2, 5, 8), options(8, 4, 16, numLayers=6, normFirst=True, finalNorm=True), outputHiddenStates=True)
    b.encoder("rank2", (5, 6), options(6, 2, 8, numLayers=2, finalNorm=True), isCausal=True, **seen)
    b.encoder("empty_batch", (0, 3, 4), options(4, 2, 5, numLayers=2), **seen)
    b.encoder("gelu_tanh_eps", x, options(6, 2, 8, numLayers=3, activation="gelu_tanh", layerNormEps=1e-12))
    b.encoder("65_wide", (2, 17, 65), options(65, 5, 129, numLayers=2, activation="gelu", finalNorm=True), outputAttentions=True,
              padding=lambda d: draw_padding(d, "attend", 2, 17))  # fmt: skip
    b.encoder("129_tokens", (1, 129, 4), options(4, 2, 7, numLayers=2, normFirst=True), isCausal=True)


def classifiers(b):
    x = (2, 5, 4)

    def small(pooling=None, classes=3, layers=1, **more):
        named = {} if pooling is None else {"pooling": pooling}
        return options(4, 2, 6, numLayers=layers, numClasses=classes, **named, **more)

    pad = {"padding": lambda d: draw_padding(d, "attend", 2, 5)}
    b.classifier("classifier_default", x, small())
    for pooling in ("none", "mean", "cls", "max"):
        b.classifier(f"classifier_{pooling}", x, small(pooling, layers=2, finalNorm=True))
        b.classifier(f"classifier_{pooling}_padding", x, small(pooling, activation="gelu"), **pad)
        b.classifier(f"classifier_{pooling}_rank2", x[1:], small(pooling), padding=lambda d: draw_padding(d, "block", 1, 5, [3]))
    b.classifier("classifier_none_all", x, small("none", layers=2), outputAttentions=True, outputHiddenStates=True,
                 trace={"layers": [1], "names": ["weights", "norm2"]}, **pad)  # fmt: skip
    for pooling in ("mean", "max"):
        for kind in ("block", "additive", "bias"):
            b.classifier(f"classifier_{pooling}_padding_{kind}", x, small(pooling), padding=lambda d, kind=kind: draw_padding(d, kind, 2, 5))
        for policy in ("zero", "nan", "uniform"):
            b.classifier(
                f"classifier_{pooling}_all_padded_{policy}", x, small(pooling), fullyMasked=policy, blocks_all=True,
                padding=lambda d: draw_padding(d, "attend", 2, 5, [3, 0]),
            )  # fmt: skip
        # Hiding keys from queries does not make their tokens padding.
        b.classifier(f"classifier_{pooling}_mask", x, small(pooling), mask=lambda d: draw_mask(d, "block", (2, 1, 1, 5)))
        b.classifier(f"classifier_{pooling}_padding_is_nan", x, small(pooling), inputs=spoil(torch.nan), **pad)
        b.classifier(f"classifier_{pooling}_empty_batch", (0, 5, 4), small(pooling))
    b.classifier("classifier_one_class", x, small("mean", classes=1, normFirst=True, finalNorm=True), **pad)
    b.classifier("classifier_17_classes", (3, 7, 4), small("cls", classes=17, layers=2, norm="rms_norm", gated=True))
    b.classifier("classifier_no_bias", x, small("mean", bias=False))
    b.classifier("classifier_mean_65", (2, 65, 4), small("mean"), padding=lambda d: draw_padding(d, "block", 2, 65))


def reference(b):
    """Reference case 5, and case 9: a classifier of short texts, composed of its parts."""
    ten = options(10, 1, 10, numLayers=1, numClasses=2)
    length = torch.arange(10) < 7
    seen = {"outputAttentions": True, "trace": {"names": ["scores", "ff_hidden"]}}
    b.classifier("encoder_and_classifier", (1, 10, 10), ten, **seen)
    b.classifier("encoder_and_classifier_mask_b11s", (1, 10, 10), ten, **seen,
                 mask=lambda d: {"kind": "attend", "data": length.float().reshape(1, 1, 1, 10)})  # fmt: skip
    b.classifier("encoder_and_classifier_mask_bss", (1, 10, 10), ten, **seen,
                 mask=lambda d: {"kind": "attend", "data": (length.expand(10, 10) & torch.ones(10, 10).bool().tril()).float()[None]})  # fmt: skip

    texts = ["a good film", "not a good film at all", "bad and boring", "i love it"]
    vocabulary = ["<pad>", *sorted({word for text in texts for word in text.split()})]
    ids = [[vocabulary.index(word) for word in text.split()] for text in texts]
    longest = max(map(len, ids))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in ids])
    table = {"numEmbeddings": len(vocabulary), "embeddingDim": 8, "paddingIdx": 0}
    for pooling in ("mean", "max", "cls"):
        b.case(
            "sentiment_classifier", f"sentiment_classifier_{pooling}", (*ids.shape, 8),
            {**options(8, 2, 16, numLayers=2, activation="gelu", numClasses=2, pooling=pooling, dropout=0.1), "embedding": table},
            padding=lambda d: {"kind": "attend", "data": (ids != 0).float()}, sentences=ids,
        )  # fmt: skip
        case = b.golden.cases[-1]
        case.update(ids={"data": ids.flatten().tolist(), "dims": list(ids.shape)}, texts=texts, vocabulary=vocabulary)


def embeddings(b):
    def case(name, count, width, ids, dims=None, padding=None, zero=True):
        name = "embedding_" + name
        module = {"numEmbeddings": count, "embeddingDim": width}
        call = {"ids": ids, **({} if dims is None else {"dims": list(dims)})}
        if padding is not None:
            module["paddingIdx"] = padding
        one = Case(b.golden, name, "embedding", module=module, options=call, state=[])
        weight = common.Draw("transformer/" + name).normal(count, width)
        if padding is not None and zero:
            weight[padding] = 0
        one.store("state.weight", weight)

        def run(dtype):
            layer = torch.nn.Embedding(count, width, padding_idx=padding, dtype=dtype)
            layer.load_state_dict({"weight": weight.to(dtype)})
            return layer(torch.tensor(ids, dtype=torch.int64).reshape(dims or (len(ids),)))

        one.expect("output", run(torch.float32), run(torch.float64))

    case("one", 1, 1, [0])
    case("list", 7, 5, [3, 0, 6, 3])
    case("batch", 7, 3, [0, 1, 2, 6, 5, 4], (2, 3))
    case("dims", 5, 4, [4, 3, 2, 1, 0, 1, 2, 3], (2, 2, 2))
    case("one_dim", 5, 2, [1, 2, 3], (3,))
    case("padding", 5, 3, [1, 2, 0, 0, 4, 0], (2, 3), padding=0)
    case("padding_last", 5, 3, [1, 4, 0], padding=4)
    case("padding_row_as_loaded", 5, 3, [1, 2, 0], padding=2, zero=False)
    case("wide", 3, 129, [2, 0], (1, 2))
    case("many", 65, 3, list(range(64, -1, -1)), (5, 13))
    case("none", 3, 4, [])
    case("empty_batch", 3, 4, [], (0, 5))


def generate():
    b = Builder()
    for part in (kinds, sizes, masks, traces, encoders, classifiers, reference, embeddings):
        part(b)
    b.golden.write(common.TESTDATA / "transformer.safetensors")


if __name__ == "__main__":
    generate()
