"""testdata/models/fine_tuning.safetensors: losses of training transformers' models as its Trainer does, without dropout: AdamW, gradients cut to norm 1,
a learning rate that falls linearly to 0, no decay of biases and norms.

Truth is the run in float64, the error that of the same lines in float32. Weights are not compared: where a gradient is 0 but for its rounding, as
that of a key's bias, Adam moves the number by the learning rate all the same, up or down."""

import torch
import transformers

import common
import models
from model_gradients import BATCH, FAMILIES, WITH_TYPES

STEPS, LABELS = 12, [0, 2, 1]
OPTIONS = {"learning_rate": 2e-3, "weight_decay": 0.1}
LAST = {"tiny-bert", "tiny-modernbert"}  # the last layer and the head alone, too
FORBIDDEN = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]


def is_trained(name, model, layers):
    if layers is None or not name.startswith(model.base_model_prefix) or "pooler" in name or "final_norm" in name:
        return True
    last = [f"{model.config.num_hidden_layers - 1 - i}" for i in range(layers)]
    return any(part in last for part in name.split("."))


@torch.enable_grad()
def losses(model, inputs, labels, layers):
    if model.config.model_type not in WITH_TYPES:
        inputs = {name: x for name, x in inputs.items() if name != "token_type_ids"}
    named = {name: p for name, p in model.named_parameters() if is_trained(name, model, layers)}
    decaying = set(transformers.trainer_pt_utils.get_parameter_names(model, [torch.nn.LayerNorm], FORBIDDEN))
    groups = [
        {"params": [p for name, p in named.items() if name in decaying]},
        {"params": [p for name, p in named.items() if name not in decaying], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=OPTIONS["learning_rate"], weight_decay=OPTIONS["weight_decay"])
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, 0, STEPS)
    results = []
    for _ in range(STEPS):
        model.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(**inputs).logits, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(named.values(), 1.0)
        optimizer.step()
        schedule.step()
        results.append(loss.detach())
    return torch.stack(results)


def generate():
    golden = common.GoldenFile(transformers=transformers.__version__)
    for name in FAMILIES:
        folder = models.FOLDER / name
        for layers in (None, 1) if name in LAST else (None,):
            inputs, _ = models.encode(folder, BATCH, 64)
            labels = torch.tensor(LABELS)
            single = losses(models.load(folder, torch.float32), inputs, labels, layers)
            with models.modernbert_in_float64():
                double = losses(models.load(folder, torch.float64), inputs, labels, layers)
            assert double.dtype == torch.float64 and double[-1] < 0.8 * double[0], (name, double)
            options = {**OPTIONS, "steps": STEPS, **({} if layers is None else {"layers": layers})}
            case = common.Case(golden, name if layers is None else f"{name}/last", "fine_tuning", checkpoint=name, options=options)
            for key, x in {**inputs, "labels": labels}.items():
                case.store(key, x)
            case.expect("losses", single, double)
            print(name, layers, double.numpy().round(4).tolist(), (single - double).abs().max().item())
    golden.write(models.FOLDER / "fine_tuning.safetensors")
