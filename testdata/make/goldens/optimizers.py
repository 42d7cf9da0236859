"""testdata/optimizers.safetensors: 100 steps of torch's SGD, Adam and AdamW on gradients drawn from seeds, with every option, a scheduled learning
rate and clip_grad_norm_; and transformers' two schedules with warm-up.

The parameters are those of a MultiheadAttention (module 0) and of an Embedding (module 1)."""

import math

import torch

import common
from common import Case

STEPS = 100
MODULE = {"embedDim": 4, "numHeads": 2}
EMBEDDING = {"numEmbeddings": 3, "embeddingDim": 4}
PARAMETERS = {
    "0.in_proj_weight": (12, 4),
    "0.in_proj_bias": (12,),
    "0.out_proj.weight": (4, 4),
    "0.out_proj.bias": (4,),
    "1.weight": (3, 4),
}
SLOTS = {"SGD": ["momentum_buffer"], "Adam": ["exp_avg", "exp_avg_sq"], "AdamW": ["exp_avg", "exp_avg_sq"]}
TORCHS = {"learningRate": "lr", "weightDecay": "weight_decay"}


def torch_name(option):
    return TORCHS.get(option, option)


def linear(step, warmup, steps):
    """transformers' get_linear_schedule_with_warmup, as a factor."""
    if step < warmup:
        return float(step) / float(max(1, warmup))
    return max(0.0, float(steps - step) / float(max(1, steps - warmup)))


def cosine(step, warmup, steps):
    """transformers' get_cosine_schedule_with_warmup, half a cycle."""
    if step < warmup:
        return float(step) / float(max(1, warmup))
    progress = float(step - warmup) / float(max(1, steps - warmup))
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * progress)))


class Builder:
    def __init__(self):
        self.golden = common.GoldenFile()

    def case(self, optimizer, name, begins=None, schedule=None, max_norm=None, groups=(), **options):
        """begins: the first step at which a parameter has gradients, by name. groups: {"names": part of a name, ...}."""
        begins = begins or {}
        given = dict(options)
        if groups:
            given["groups"] = list(groups)
        if begins:
            given["begins"] = begins
        if schedule:
            given["schedule"] = schedule
        if max_norm is not None:
            given["maxNorm"] = max_norm
        case = Case(self.golden, f"{optimizer}_{name}", optimizer, options=given, state=[])
        draw = common.Draw("optimizers/" + name)
        values, gradients = {}, {}
        for parameter, dims in PARAMETERS.items():
            values[parameter] = case.generate("state." + parameter, "normal", draw.next_seed(), dims)
            # A bias has tiny gradients, so that eps matters.
            kind = ("uniform", 2.0**-24) if parameter.endswith("bias") else ("normal", 1)
            gradients[parameter] = case.generate("gradient." + parameter, kind[0], draw.next_seed(), (STEPS, *dims), kind[1])

        def run(dtype):
            tensors = {n: torch.nn.Parameter(t.to(dtype)) for n, t in values.items()}
            parts = [{"params": []} | {torch_name(k): v for k, v in g.items() if k != "names"} for g in groups] + [{"params": []}]
            for parameter, tensor in tensors.items():
                plain = parameter.split(".", 1)[1]
                at = next((i for i, g in enumerate(groups) if g["names"] in plain), len(groups))
                parts[at]["params"].append(tensor)
            parts = [p for p in parts if p["params"]]
            made = getattr(torch.optim, optimizer)(parts, **{torch_name(k): v for k, v in options.items()})
            first = [g["lr"] for g in made.param_groups]
            result, norms = {}, []
            for step in range(STEPS):
                for parameter, tensor in tensors.items():
                    late = step < begins.get(parameter, 0)
                    tensor.grad = None if late else gradients[parameter][step].to(dtype)
                if schedule:
                    for group, lr in zip(made.param_groups, first):
                        group["lr"] = lr * linear(step, **schedule)
                if max_norm is not None:
                    norms.append(torch.nn.utils.clip_grad_norm_(tensors.values(), max_norm))
                made.step()
                if step == 0:
                    result.update({n + ".first": t.detach().clone() for n, t in tensors.items()})
            for parameter, tensor in tensors.items():
                result[parameter] = tensor.detach()
                for slot in SLOTS[optimizer]:
                    if made.state[tensor].get(slot) is not None:
                        result[f"{parameter}.{slot}"] = made.state[tensor][slot]
            if norms:
                result["norms"] = torch.stack(norms)
            return result

        single, double = run(torch.float32), run(torch.float64)
        assert single.keys() == double.keys()
        for result in single:
            case.expect(result, single[result], double[result])
        self.golden.add(f"{case.name}/torch", torch.cat([single[n].reshape(-1) for n in sorted(single)]))

    def schedule(self, name, function, learning_rate, warmup, steps, minimum=0.0):
        """Stores the rate of every step in float64 as two float32: the rounded value and the remainder."""
        options = {"learningRate": learning_rate, "warmup": warmup, "steps": steps}
        if minimum:
            options["minimum"] = minimum
        case = Case(self.golden, f"{name}_{warmup}_of_{steps}{'_minimum' if minimum else ''}", name, options=options)
        values = []
        for step in range(steps):
            factor = function(step, warmup, steps)
            rate = minimum / learning_rate  # get_cosine_with_min_lr_schedule_with_warmup; its warm-up also begins at 0
            values.append(learning_rate * (factor if step < warmup else max(0.0, factor * (1 - rate) + rate)))
        exact = torch.tensor(values, dtype=torch.float64)
        high = exact.float()
        self.golden.expect(case.json, "high", high, exact)
        self.golden.add(f"{case.name}/expected.low", (exact - high.double()).float())


def generate():
    b = Builder()
    bias = {"names": "bias", "weightDecay": 0.0}
    late = {"0.out_proj.weight": 50, "0.in_proj_bias": 99}
    b.case("SGD", "default")
    b.case("SGD", "momentum", learningRate=0.05, momentum=0.9)
    b.case("SGD", "dampening", learningRate=0.05, momentum=0.8, dampening=0.3)
    b.case("SGD", "nesterov", learningRate=0.05, momentum=0.9, nesterov=True)
    b.case("SGD", "weight_decay", learningRate=0.05, weightDecay=0.1)
    b.case("SGD", "late", late, learningRate=0.01, momentum=0.9, weightDecay=0.01)
    b.case(
        "SGD", "everything", late, {"warmup": 10, "steps": 100}, 3.0, [bias, {"names": "out_proj", "learningRate": 0.2}],
        learningRate=0.05, momentum=0.9, nesterov=True, weightDecay=0.1,
    )  # fmt: skip
    for name in ("Adam", "AdamW"):
        b.case(name, "default")
        b.case(name, "fast", learningRate=0.1)
        b.case(name, "betas", learningRate=0.01, betas=[0.5, 0.9])
        b.case(name, "small_betas", learningRate=0.01, betas=[0.3, 0.0])
        b.case(name, "eps", learningRate=0.01, eps=0.125)
        b.case(name, "weight_decay", learningRate=0.01, weightDecay=0.1)
        b.case(name, "no_weight_decay", learningRate=0.01, weightDecay=0.0)
        b.case(name, "late", late, learningRate=0.01)
        b.case(name, "schedule", None, {"warmup": 10, "steps": 100}, learningRate=0.01)
        b.case(
            name, "everything", late, {"warmup": 7, "steps": 100}, 3.0, [bias, {"names": "out_proj", "learningRate": 0.02, "weightDecay": 0.3}],
            learningRate=0.05, betas=[0.8, 0.95], eps=1e-4, weightDecay=0.1,
        )  # fmt: skip
    for warmup, steps in ((0, 10), (3, 10), (10, 10), (5, 37)):
        b.schedule("linear_schedule", linear, 0.001, warmup, steps)
        b.schedule("cosine_schedule", cosine, 5e-5, warmup, steps)
    b.schedule("cosine_schedule", cosine, 0.01, 4, 50, minimum=0.001)
    b.golden.write(common.TESTDATA / "optimizers.safetensors", limit=200_000)


if __name__ == "__main__":
    generate()
