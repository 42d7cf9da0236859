"""testdata/losses.safetensors: cross_entropy, mse_loss and binary_cross_entropy_with_logits of torch, with their gradients by autograd."""

import torch
import torch.nn.functional as F

import common
from common import Case, both


class Builder:
    def __init__(self):
        self.golden = common.GoldenFile()

    def case(self, op, name, function, inputs, options):
        """function(x, *others) returns the loss; inputs: tensors by name, the first of which is x."""
        case = Case(self.golden, f"{op}_{name}", op, options=options)
        tensors = [case.store(n, t) for n, t in inputs.items()]

        def run(dtype):
            x, *others = (t.to(dtype) for t in tensors)
            x.requires_grad_()
            with torch.enable_grad():
                loss = function(x, *others)
                loss.backward()
            return {"loss": loss.detach(), "gradient": x.grad}

        for result in both(run, "loss", "gradient"):
            case.expect(*result)


def cross_entropy(b):
    def case(name, logits, labels, weight=None, **options):
        draw = common.Draw("losses/cross_entropy_" + name)
        inputs = {"logits": logits if isinstance(logits, torch.Tensor) else draw.normal(*logits, std=2)}
        if weight is not None:
            inputs["weight"] = torch.tensor(weight)
        torchs = {
            "label_smoothing": options.get("labelSmoothing", 0.0),
            "ignore_index": options.get("ignoreIndex", -100),
            "reduction": options.get("reduction", "mean"),
        }

        def function(x, weight=None):
            flat = x.reshape(-1, x.shape[-1])  # classes are the last dimension, for any rank
            return F.cross_entropy(flat, torch.tensor(labels, dtype=torch.int64), weight, **torchs)

        b.case("cross_entropy", name, function, inputs, {"labels": labels, **options})

    some, five = [2, 0, 1, 3, 3, 4, 0], [0.5, 2.0, 1.0, 0.0, 3.25]
    ignored = [2, -100, 1, 3, -100, 4, 0]
    case("plain", (7, 5), some)
    case("one_row", (5,), [3])
    case("one_class", (3, 1), [0, 0, 0])
    case("two_classes", (9, 2), [0, 1, 1, 0, 1, 0, 0, 0, 1])
    case("rank3", (2, 3, 5), [4, 0, 1, 3, 2, 2])
    case("rank3_ignored", (2, 3, 5), [4, -100, -100, 3, 2, -100])
    case("sum", (7, 5), some, reduction="sum")
    case("129_rows", (129, 3), [i * i % 3 for i in range(129)])
    case("130_classes", (5, 130), [129, 0, 64, 65, 7])
    case("sure", common.Draw("losses/sure").normal(7, 5) * 40, some)
    for reduction in ("mean", "sum"):
        for smoothing in (0.0, 0.1, 1.0):
            for weight in (None, five):
                name = f"{reduction}_smoothing_{smoothing:g}{'_weight' if weight else ''}".replace(".", "_")
                case(name, (7, 5), ignored, weight, labelSmoothing=smoothing, reduction=reduction)
        case(f"{reduction}_all_ignored", (3, 4), [-100] * 3, reduction=reduction)
        case(f"{reduction}_all_ignored_smoothing", (3, 4), [-100] * 3, [1.0, 2.0, 3.0, 4.0], labelSmoothing=0.1, reduction=reduction)
        case(f"{reduction}_no_rows", (0, 4), [], reduction=reduction)
        case(f"{reduction}_labels_of_weight_0", (3, 5), [3, 3, 3], five, reduction=reduction)
    case("ignore_a_class", (7, 5), some, ignoreIndex=3)
    case("ignore_minus_1", (3, 5), [2, -1, 1], ignoreIndex=-1)
    wild = common.Draw("losses/wild").normal(6, 4)
    wild[0, 1] = wild[1, 0] = -torch.inf
    wild[2, 3], wild[3, 2], wild[4] = torch.inf, torch.nan, -torch.inf
    case("not_finite", wild, [2, 0, 1, 0, 0, 1])
    case("far_apart", torch.tensor([[0.0, -200, 100], [3e38, -3e38, 0], [1e-30, 0, -1e-30]]), [0, 0, 1])


def mse_loss(b):
    def case(name, dims, **options):
        draw = common.Draw("losses/mse_" + name)
        inputs = {"prediction": draw.normal(*dims), "target": draw.normal(*dims)}
        b.case("mse_loss", name, lambda x, t: F.mse_loss(x, t, **options), inputs, options)

    for reduction in ("mean", "sum"):
        for dims in ((), (7,), (5, 9), (2, 3, 17), (129, 2), (3, 0)):
            case(f"{reduction}_{'x'.join(map(str, dims)) or 'scalar'}", dims, reduction=reduction)
    case("default", (3, 4))


def binary_cross_entropy(b):
    def case(name, dims, weight=None, pos_weight=None, x=None, **options):
        draw = common.Draw("losses/bce_" + name)
        inputs = {"logits": draw.normal(*dims, std=2) if x is None else x, "target": draw.coin(*dims, p=0.4).float()}
        if options.pop("soft", False):
            inputs["target"] = (draw.normal(*dims) * 0.125 + 0.5).float()
        if weight is not None:
            inputs["weight"] = draw.normal(*weight).abs()
        if pos_weight is not None:
            inputs["posWeight"] = draw.normal(*pos_weight).abs() * 3
        names = list(inputs)[2:]

        def function(x, target, *more):
            given = dict(zip(names, more))
            return F.binary_cross_entropy_with_logits(
                x, target, given.get("weight"), pos_weight=given.get("posWeight"), reduction=options.get("reduction", "mean")
            )

        b.case("binary_cross_entropy_with_logits", name, function, inputs, options)

    case("default", (5, 4))
    case("soft", (5, 4), soft=True)
    for reduction in ("mean", "sum"):
        case(f"{reduction}_weight", (5, 4), weight=(5, 4), reduction=reduction)
        case(f"{reduction}_weight_classes", (5, 4), weight=(4,), reduction=reduction)
        case(f"{reduction}_weight_rows", (5, 4), weight=(5, 1), reduction=reduction)
        case(f"{reduction}_pos_weight", (5, 4), pos_weight=(4,), reduction=reduction)
        case(f"{reduction}_both", (2, 3, 4), weight=(3, 1), pos_weight=(2, 1, 4), soft=True, reduction=reduction)
        case(f"{reduction}_empty", (0, 4), reduction=reduction)
    case("rank1", (129,))
    sure = torch.tensor([[0.0, 30, -30, 88], [-88, 200, -200, 1e30], [3e38, -3e38, 1e-30, torch.nan]])
    case("sure", (3, 4), x=sure, pos_weight=(1,))


def generate():
    b = Builder()
    for part in (cross_entropy, mse_loss, binary_cross_entropy):
        part(b)
    b.golden.write(common.TESTDATA / "losses.safetensors", limit=100_000)


if __name__ == "__main__":
    generate()
