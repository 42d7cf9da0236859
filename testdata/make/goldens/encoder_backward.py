"""testdata/encoder_backward.safetensors: gradients by torch.autograd for the encoder cases of transformer.safetensors.

A case has the name of its forward case and the gradient of its output, for classifiers that of the logits. The inputs and state of the forward are
not copied. Cases with features that torch's modules lack (grouped heads, rotary, windows, softcap) store theirs. The gradients are those of the
formula, which must agree with the backward of torch's modules."""

import contextlib

import torch
import torch.nn.functional as F

import common
import transformer
from attention import draw_mask, draw_padding
from backward import autograd
from common import Case
from transformer import ATTENTION, LAYER, options

SEEN = ("probabilities", "weights", "weighted_values")


# Feature dimensions to flip; by default all dimensions of parameters, and none of intermediates.
FLIPPED = {"x": (-1,), "in_proj_weight": (1,), "in_proj_bias": (), **{f"{n}_proj.weight": (1,) for n in "qkv"},
           **{f"{n}_proj.bias": () for n in "qkv"}, "out_proj.weight": (0,), "classifier.weight": (1,),
           "classifier.bias": (), "output": (-1,), **{n: (-1,) for n in LAYER}}  # fmt: skip


def mirror(name, tensor):
    """Reverses the order of an encoder's features: the same numbers, but each sum is computed in the other direction."""
    last = next((n for n in FLIPPED if name.endswith(n) and name[-len(n) - 1 : -len(n)] in ("", ".")), None)
    every = tuple(range(tensor.dim())) if name.startswith("state.") else ()
    return tensor.flip(every if last is None else FLIPPED[last])


def worse_of(one, other, double):
    """The larger of both errors: a single computation of a gradient may be exact by accident if sums almost cancel."""
    return {n: other[n] if n in other and common.max_error(other[n], double[n]) > common.max_error(t, double[n]) else t for n, t in one.items()}


class Encoders(transformer.Builder):
    """Gradients for the cases of transformer.py, except classifiers of token ids; with `own`, for cases without a forward there."""

    own = False

    def case(self, op, name, x, module, *, mask=None, padding=None, inputs=None, blocks_all=False, sentences=None, **options):
        if sentences is not None:
            return
        if self.own:
            case = Case(self.golden, name, op + "_backward", module=module, options=options, state=[])
        else:
            case = Case(self.golden, name, op + "_backward", options={}, of="transformer")
        forward = case if self.own else Case(common.GoldenFile(), name, op, state=[])
        of = transformer.Drawn(forward, op, name, x, module, mask, padding, inputs, None, options)
        assert bool((~of.allowed.any(-1)).any()) == blocks_all, name
        head, alone = "classifier.weight" in of.state, op == "transformer_encoder_layer"
        padded, policy = ~of.present, of.policy
        if policy == "nan" and head and module.get("pooling", "none") != "none":
            # Pooling ignores a sequence of padding alone, so it has no gradient, whatever its queries are.
            assert torch.equal(~of.allowed.any(-1), padded.all(-1)[:, None, None].expand(of.dims[:-1])), name
            policy = "zero"
        if inputs:
            of.x[padded] = 0
        tensors = {"x": of.x, **{"state." + n: t for n, t in of.state.items()}}

        def encoder_of(leaves):
            """The state by the names in an encoder."""
            return {n: leaves["state." + (f"encoder.{n}" if head else n.removeprefix("layers.0.") if alone else n)] for n in of.encoder}

        def output_of(results, leaves):
            if not head:
                return results["output"]
            pooled = transformer.pool(module, results["output"], of.present, of.policy)
            return F.linear(pooled, leaves["state.classifier.weight"], leaves["state.classifier.bias"])

        def run(leaves):
            results = transformer.encoder_steps(of.module, encoder_of(leaves), leaves["x"], of.allowed, of.additive, policy)
            steps = {n: t for n, t in results.items() if n.startswith("trace.")}
            return {**steps, "output": output_of(results, leaves)}

        def of_torch(leaves):
            x = leaves["x"]
            results = transformer.torch_results(op, of.module, encoder_of(leaves), x, of.torch_masks(x.dtype), x.dtype)
            return {"output": output_of(results, leaves)}

        dims = run({n: t.double() for n, t in tensors.items()})["output"].shape
        grad = common.Draw("encoder_backward/" + name).normal(*dims)
        if inputs and dims[:-1] == padded.shape:
            grad[padded] = 0
        case.store("grad", grad[0] if of.flat else grad)
        single, double = (autograd(run, tensors, grad, dtype) for dtype in (torch.float32, torch.float64))
        if all(of.dims) and not inputs and not blocks_all and not self.own:
            with loaded_as_they_are():
                again = autograd(of_torch, tensors, grad, torch.float64)
                modules = autograd(of_torch, tensors, grad, torch.float32)
            for n in tensors:
                common.assert_close(again[n], double[n], f"{name}: {n}")
            single = worse_of(single, modules, double)
        mirrored = autograd(run, {n: mirror(n, t) for n, t in tensors.items()}, grad if head else grad.flip(-1), torch.float32)
        mirrored = {n: mirror(n, t) for n, t in mirrored.items()}
        for n in double:
            common.assert_close(mirrored[n], double[n], f"{name}: {n} mirrored", 1e-2)
        single = worse_of(single, mirrored, double)
        case.expect("grad_x", *(t["x"][0] if of.flat else t["x"] for t in (single, double)))
        for n in of.state:
            case.expect("state." + n, single["state." + n], double["state." + n])
        if "trace" not in options:
            return
        trace, layers = options["trace"], range(of.module["numLayers"])
        for layer in trace.get("layers", layers):
            for n in trace.get("names", (*ATTENTION, *LAYER)):
                one, two = (t[f"trace.{layer}.{n}"] for t in (single, double))
                if n in SEEN or n in ("scores", "masked_scores") and policy == "nan":
                    seen = of.allowed.unsqueeze(-1) if n == "weighted_values" else of.allowed
                    one, two = torch.where(seen, one, 0), torch.where(seen, two, 0)
                    if policy == "nan":
                        empty = ~of.allowed.any(-1, keepdim=True)
                        empty = empty.unsqueeze(-1) if n == "weighted_values" else empty
                        one, two = torch.where(empty, torch.nan, one), torch.where(empty, torch.nan, two)
                case.expect(f"trace.{layer}.{n}", *(t[0] if of.flat else t for t in (one, two)))


@contextlib.contextmanager
def loaded_as_they_are():
    """Makes load_state_dict of torch's modules keep the given tensors, which autograd knows, instead of copying them into parameters."""
    load = torch.nn.Module.load_state_dict

    def put(module, state):
        for name, tensor in state.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            del owner._parameters[last]
            setattr(owner, last, tensor)

    torch.nn.Module.load_state_dict = put
    try:
        yield
    finally:
        torch.nn.Module.load_state_dict = load


def more(b):
    """Features that torch's modules lack, each alone and all at once, with both orders of the norms."""
    every = {"names": [*ATTENTION, "weighted_values", *LAYER]}
    grouped, rotary, interleaved = {"numKeyValueHeads": 2}, {"rotary": {}}, {"rotary": {"theta": 100, "offset": 3, "interleaved": True}}
    window, softcap = {"window": [2, 1]}, {"softcap": 0.5}
    pad = {"padding": lambda d: draw_padding(d, "attend", 2, 5, [5, 3])}
    for label, order in transformer.BOTH:
        def layer(name, given, label=label, order=order, **call):
            b.layer(f"{label}_{name}", (2, 5, 8), options(8, 4, 6, **given, **order), **call)

        layer("grouped", grouped, trace=every)
        layer("one_group", {"numKeyValueHeads": 1, "bias": False}, isCausal=True)
        layer("rotary", rotary, trace=every)
        layer("rotary_interleaved", interleaved, **pad)
        layer("window", window, trace=every)
        layer("window_to_the_left", {"window": [1, -1]}, isCausal=True)
        layer("softcap", softcap, trace=every)
        layer("nan_trace", {}, fullyMasked="nan", blocks_all=True, mask=lambda d: draw_mask(d, "attend", (5, 5), row=2), trace=every)
        layer("softcap_mask", softcap, mask=lambda d: draw_mask(d, "additive", (2, 4, 5, 5)))
        all_of = {**grouped, **interleaved, **window, "softcap": 2, "gated": True, "norm": "rms_norm", "activation": "silu", **order}
        layer("everything", {n: t for n, t in all_of.items() if n not in order}, isCausal=True, trace=every, **pad)
        b.encoder(f"{label}_everything", (2, 5, 8), options(8, 4, 6, numLayers=2, finalNorm=True, **all_of), **pad)
        for pooling in ("none", "mean", "cls", "max"):
            b.classifier(f"{label}_everything_{pooling}", (2, 5, 8),
                         options(8, 4, 6, numLayers=2, finalNorm=True, numClasses=3, pooling=pooling, **all_of), **pad)  # fmt: skip


def generate():
    b = Encoders()
    for part in (transformer.kinds, transformer.sizes, transformer.masks, transformer.traces, transformer.encoders, transformer.classifiers,
                 transformer.reference):  # fmt: skip
        part(b)
    b.own = True
    more(b)
    b.golden.write(common.TESTDATA / "encoder_backward.safetensors", limit=1_500_000)


if __name__ == "__main__":
    generate()
