"""testdata/models/fine_tuning.safetensors: losses while transformers' models are trained as by its Trainer: AdamW, gradients clipped to norm 1, a
learning rate that falls linearly to 0, no weight decay of biases and norms. One run has no dropout, another a different probability for each place
in the config. transformers determines the places; the dropped values are drawn as in attn.

The expected values are those of the run in float64, the error that of the same code in float32. Weights are not compared: if a gradient is 0 except
for rounding, as for the bias of a key, Adam still changes the weight by the learning rate, up or down."""

from unittest import mock

import numpy as np
import torch
import transformers

import common
import decoders
import models
from backward import philox
from model_gradients import BATCH, FAMILIES, WITHOUT_TYPES

STEPS, LABELS, SEED = 12, [0, 2, 1], 2**35 + 7
OPTIONS = {"learning_rate": 2e-3, "weight_decay": 0.1}
LAST = {"tiny-bert", "tiny-modernbert"}
# Names of dropout probabilities in configurations, each with a distinct value; None: the family's default.
BERT = {"hidden_dropout_prob": 0.15, "attention_probs_dropout_prob": 0.25, "classifier_dropout": 0.35}
DROPOUT = {
    "tiny-bert": BERT,
    "tiny-distilbert": {"dropout": 0.15, "attention_dropout": 0.25, "seq_classif_dropout": 0.35},
    "tiny-roberta": BERT,
    "tiny-xlm-roberta": {**BERT, "classifier_dropout": None},
    "tiny-mpnet": {name: p for name, p in BERT.items() if name != "classifier_dropout"},
    "tiny-modernbert": {"attention_dropout": 0.25, "mlp_dropout": 0.15, "embedding_dropout": 0.1, "classifier_dropout": 0.35},
    "tiny-deberta": {"hidden_dropout_prob": 0.15, "attention_probs_dropout_prob": 0.25, "pooler_dropout": 0.1, "cls_dropout": None},
}
# The dropouts of a forward in order, as numbers of attn's DropoutSite: before the layers, in each layer, after them.
ATTENTION, ATTENTION_OUTPUT, HIDDEN, OUTPUT, EMBEDDINGS, POOLED, CLASSIFIER, RELATIVE = range(8)
PLACES = {
    "distilbert": ([EMBEDDINGS], [ATTENTION, OUTPUT], [CLASSIFIER]),
    "modernbert": ([EMBEDDINGS], [ATTENTION, ATTENTION_OUTPUT, HIDDEN], [CLASSIFIER]),
    "bert": ([EMBEDDINGS], [ATTENTION, ATTENTION_OUTPUT, OUTPUT], [CLASSIFIER]),
    "deberta-v2": ([EMBEDDINGS], [RELATIVE, ATTENTION, ATTENTION_OUTPUT, OUTPUT], [POOLED, CLASSIFIER]),
    "gpt2": ([EMBEDDINGS], [ATTENTION, ATTENTION_OUTPUT, OUTPUT], []),
    **dict.fromkeys(("roberta", "xlm-roberta", "mpnet"), ([EMBEDDINGS], [ATTENTION, ATTENTION_OUTPUT, OUTPUT], [POOLED, CLASSIFIER])),
}
FORBIDDEN = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]


def is_trained(name, model, layers):
    finals = ("pooler", "final_norm", "ln_f", "model.norm", "final_layer_norm")
    if layers is None or not name.startswith(model.base_model_prefix) or any(part in name for part in finals):
        return True
    last = [f"{model.config.num_hidden_layers - 1 - i}" for i in range(layers)]
    return any(part in last for part in name.split("."))


class Drawn:
    """Replaces torch.nn.functional.dropout in one training step: uses the generator in SEMANTICS.md, with the place of each call."""

    def __init__(self, config, step):
        before, layer, after = PLACES[config.model_type]
        layers = [(site, i) for i in range(config.num_hidden_layers) for site in layer]
        self.places, self.step = iter([*((site, 0) for site in before), *layers, *((site, 0) for site in after)]), step

    def __call__(self, x, p=0.5, training=True, inplace=False):
        assert training and not inplace
        site, layer = next(self.places)
        words = philox([np.array(n) for n in (self.step, 0, site, layer)], (SEED & 0xFFFFFFFF, SEED >> 32))
        dims = [*x.shape[:1], *([1] * (4 - x.dim())), *x.shape[1:]]
        b, h, i, j = np.indices(dims)
        drawn = np.stack(philox([j // 4, i, h, b], (int(words[0]), int(words[1]))), -1)
        word = np.take_along_axis(drawn, (j % 4)[..., None], -1)[..., 0]
        kept = torch.from_numpy(word >> np.uint64(8) >= np.uint64(np.ceil(np.float64(np.float32(p)) * 2**24)))
        return torch.where(kept.reshape(x.shape), x / (1 - p), 0)


# Language models: with biases, tied, with a norm of queries and keys, with a soft cap and windows, with parallel residuals, with one window.
LANGUAGE_MODELS = ("tiny-gpt2", "tiny-llama", "tiny-llama-3", "tiny-qwen3", "tiny-gemma-2", "tiny-gemma-3", "tiny-neox", "tiny-mistral")
PROMPT = 2  # tokens of the second text that have no loss


@torch.enable_grad()
def losses(model, inputs, labels, layers, config):
    model.train()
    if model.config.model_type in WITHOUT_TYPES or labels.dim() == 2:
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
    for step in range(STEPS):
        model.zero_grad()
        dropout = Drawn(model.config, step) if any(config.values()) else torch.nn.functional.dropout
        with mock.patch.object(torch.nn.functional, "dropout", dropout):
            logits = model(**inputs).logits
            # As the loss of …ForCausalLM, which computes in float32.
            logits, targets = (logits, labels) if labels.dim() == 1 else (logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
            loss = torch.nn.functional.cross_entropy(logits, targets)
        assert dropout is torch.nn.functional.dropout or next(dropout.places, None) is None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(named.values(), 1.0)
        optimizer.step()
        schedule.step()
        results.append(loss.detach())
    return torch.stack(results)


def generate():
    golden = common.GoldenFile(transformers=transformers.__version__)
    for name in (*FAMILIES, "tiny-deberta"):
        folder = models.FOLDER / name
        none = dict.fromkeys(DROPOUT[name], 0.0)
        for layers, config in [(layers, config) for layers in ((None, 1) if name in LAST else (None,)) for config in (none, DROPOUT[name])]:
            inputs, _ = models.encode(folder, BATCH, 64)
            labels = torch.tensor(LABELS)
            single = losses(models.load(folder, torch.float32, **config), inputs, labels, layers, config)
            with models.modernbert_in_float64():
                double = losses(models.load(folder, torch.float64, **config), inputs, labels, layers, config)
            assert double.dtype == torch.float64 and (config is not none or double[-1] < 0.8 * double[0]), (name, double)
            options = {**OPTIONS, "steps": STEPS, "seed": SEED, **({} if layers is None else {"layers": layers})}
            title = name + ("" if layers is None else "/last") + ("/dropout" if config is DROPOUT[name] else "")
            case = common.Case(golden, title, "fine_tuning", checkpoint=name, config=config, options=options)
            for key, x in {**inputs, "labels": labels}.items():
                case.store(key, x)
            case.expect("losses", single, double)
            print(title, double.numpy().round(4).tolist(), (single - double).abs().max().item())
    for name in LANGUAGE_MODELS:
        folder = models.FOLDER / name
        dropout = {"attn_pdrop": 0.25, "resid_pdrop": 0.15, "embd_pdrop": 0.1}
        none = dict.fromkeys(dropout, 0.0) if name == "tiny-gpt2" else {}
        runs = [(None, none)] if name != "tiny-gpt2" else [(None, none), (None, dropout), (1, none)]
        if name == "tiny-llama":
            runs.append((1, none))  # with its own output matrix
        for layers, config in runs:
            inputs, _ = decoders.encode(folder, decoders.TEXTS[:3], 64)
            labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
            labels[1, :PROMPT] = -100
            single = losses(decoders.load(folder, torch.float32, **config), inputs, labels, layers, config)
            exact = decoders.load(folder, torch.float64, **config)
            with decoders.in_float64():
                double = losses(exact, inputs, labels, layers, config)
            assert double.dtype == torch.float64 and double[-1] < 0.9 * double[0], (name, double)
            options = {**OPTIONS, "steps": STEPS, "seed": SEED, **({} if layers is None else {"layers": layers})}
            title = name + ("" if layers is None else "/last") + ("/dropout" if any(config.values()) else "")
            case = common.Case(golden, title, "fine_tuning", checkpoint=name, config=config, options=options)
            for key, x in {**inputs, "labels": labels}.items():
                case.store(key, x)
            case.expect("losses", single, double)
            print(title, double.numpy().round(4).tolist(), (single - double).abs().max().item())
    golden.write(models.FOLDER / "fine_tuning.safetensors")
