"""testdata/layers_backward.safetensors: gradients by torch.autograd for the cases of multi_head_attention.safetensors.

A case has the name of its forward case and the gradient of the output; the inputs and state of the forward are not copied."""

import torch
import torch.nn.functional as F

import common
import multi_head_attention as mha
from attention import mask_to_rank4
from backward import autograd
from common import Case

STEPS = (*mha.PROJECTIONS, "scores", "masked_scores", "probabilities", "weights", "weighted_values", "context", "merged")


def named_by_layer(module, state):
    """A layer whose heads have torch's number and width has one packed weight, regardless of the form of its state."""
    heads, groups, head, value_head = mha.widths(module)
    embed = module["embedDim"]
    if "q_proj.weight" not in state or not heads * head == groups * head == groups * value_head == embed:
        return state
    named = {n: t for n, t in state.items() if n[:7] not in ("q_proj.", "k_proj.", "v_proj.")}
    for kind in ("weight", "bias"):
        if f"q_proj.{kind}" in state:
            named[f"in_proj_{kind}"] = torch.cat([state[f"{letter}_proj.{kind}"] for letter in "qkv"])
    return named


class Attention(mha.Builder):
    """Gradients for the cases of multi_head_attention.py. Queries without keys are tested separately, because autograd gives NaN for them."""

    def case(self, name, query, key=None, value=None, *, module, mask=None, padding=None, form="torch", blocks_all=False, **options):
        if blocks_all or (key and 0 in key):
            return
        draw = common.Draw("multi_head_attention/" + name)
        state = mha.draw_state(draw, module)
        inputs = {"query": draw.normal(*query)}
        if key:
            inputs["key"] = draw.normal(*key)
        if value:
            inputs["value"] = draw.normal(*value)
        elif key:
            inputs["value"] = inputs["key"]
        found = {n: make(draw) for n, make in (("mask", mask), ("keyPaddingMask", padding)) if make}
        flat = len(query) == 2
        scale = options.get("scale", module.get("scale", mha.widths(module)[2] ** -0.5))
        extra = module.get("addBiasKv", False) + module.get("addZeroAttn", False)
        dims = (1 if flat else query[0], module["numHeads"], query[-2], (key or query)[-2])
        masks = [{"kind": m["kind"], "data": m["data"][:, None, None, :] if n == "keyPaddingMask" else mask_to_rank4(m["data"])}
                 for n, m in found.items()]  # fmt: skip
        allowed, additive = common.combine(dims, masks, options.get("isCausal", False))
        every = F.pad(allowed, (0, extra), value=True)
        every_additive = None if additive is None else F.pad(additive, (0, extra))
        seen = every.expand(dims[0], dims[1], dims[2], dims[3] + extra)

        def run(leaves):
            x = [leaves.get(n, leaves["query"]) for n in ("query", "key", "value")]
            x = [t[None] if flat else t for t in x]
            own = {n[6:]: t for n, t in leaves.items() if n.startswith("state.")}
            steps = mha.by_formula(module, own, x, scale, every, every_additive, "zero", x[0].dtype)
            output = steps.pop("output")
            return {**steps, "output": output[0] if flat else output}

        width = module["embedDim"] if module.get("outProj", True) else mha.widths(module)[0] * mha.widths(module)[3]
        case = Case(self.golden, name, "multi_head_attention_backward", options={}, of="multi_head_attention")
        grad = case.store("grad", common.Draw("layers_backward/" + name).normal(*query[:-1], width))
        tensors = {**inputs, **{"state." + n: t for n, t in state.items()}}
        single, double = (autograd(run, tensors, grad, dtype) for dtype in (torch.float32, torch.float64))
        for n in inputs:
            case.expect("grad_" + n, single[n], double[n])
        one, two = (named_by_layer(module, {n: found["state." + n] for n in state}) for found in (single, double))
        for n in one:
            case.expect("state." + n, one[n], two[n])
        if "trace" in options:
            for n in STEPS:
                one, two = single[n], double[n]
                if n == "weighted_values":
                    one, two = (torch.where(seen.unsqueeze(-1), t, 0) for t in (one, two))
                elif n in ("probabilities", "weights"):
                    one, two = (torch.where(seen, t, 0) for t in (one, two))
                case.expect("trace." + n, *(t[0] if flat else t for t in (one, two)))


def generate():
    b = Attention()
    for part in (mha.self_attention, mha.cross_attention, mha.masks, mha.causal, mha.unbatched, mha.no_output_projection, mha.scales,
                 mha.separate_projections, mha.traces, mha.added_keys, mha.grouped_heads, mha.head_widths):  # fmt: skip
        part(b)
    b.golden.write(common.TESTDATA / "layers_backward.safetensors", limit=900_000)


if __name__ == "__main__":
    generate()
