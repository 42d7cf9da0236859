"""testdata/models/gradients.safetensors, token_gradients, deberta_gradients, later_gradients, attribution: gradients of transformers' models by
torch.autograd, and attribution scores of tokens.

The expected values are those of the models in float64, loaded as in models.py, with eager attention in eval mode; the error is that of the same code
in float32. The scores follow the formulas of the papers. Integrated gradients use Captum's quadrature with weights in float64; Captum rounds them to
float32, and with rounded weights both must agree to 1e-10."""

import math

import captum
import numpy as np
import torch
import transformers
from captum.attr import LayerIntegratedGradients
from safetensors.torch import load_file

import common
import models

# Gradients are computed for row 1, which has two types and padding; row 0 is short.
BATCH = ["Was it bad?", ("Was it?", "It was."), models.TEXTS[3]]
ROW, LABEL, COMPONENT = 1, 1, 3
FAMILIES = ("tiny-bert", "tiny-distilbert", "tiny-roberta", "tiny-xlm-roberta", "tiny-mpnet", "tiny-modernbert")
WITH_HEAD = (*FAMILIES, "tiny-modernbert-2024", "tiny-bert-multilabel")
OF_TOKENS = ("tiny-bert-ner", "tiny-bert-mlm", "tiny-mpnet-mlm", "tiny-modernbert-qa", "tiny-electra-mlm")
DEBERTAS = ("tiny-deberta", "tiny-deberta-ner", "tiny-deberta-mlm", "tiny-deberta-qa")
TOKEN = 2
OTHERS = ("tiny-ernie", "tiny-electra")  # with an additional table, and with narrower tables
LATER = ("tiny-albert", "tiny-albert-mlm", "tiny-nomic", "tiny-nomic-2024", "tiny-jina", "tiny-jina-mean", "tiny-gte-ner", "tiny-gte-2024")
POOLING = {"tiny-bert-legacy": "mean", "tiny-bert-cls": "cls", "tiny-mpnet-mean": "mean"}
LATER_POOLING = dict.fromkeys(("tiny-nomic-2024", "tiny-jina-mean", "tiny-gte-2024"), "mean")
WITHOUT_TYPES = ("distilbert", "mpnet", "modernbert")

TEXTS = ["Was it bad?", "The film was not bad, it was good!"]
# Short, long and negated texts, words of several pieces, and unknown characters, which are not special tokens.
FILMS = [
    "not bad at all",
    "A film with wonderful actors and a terrible script.",
    "It was good, but far too long.",
    "UNBELIEVABLY tedious: supercalifragilistic nonsense!",
    "a quietly moving story 😀 told with warmth and wit",
    "I wanted to like this film, but the plot is thin, the jokes are old and nobody in it seems to care.",
]
STEPS = {"integrated_gradients": 50, "integrated_gradients_8": 8}


def forward(model, inputs):
    if model.config.model_type in WITHOUT_TYPES:
        inputs = {name: x for name, x in inputs.items() if name != "token_type_ids"}
    return model(**inputs, output_attentions=True)


class Kept:
    """Keeps the gradients of the word embeddings and of the attention probabilities of one forward."""

    def __init__(self, model, inputs):
        def keep(module, args, x):
            x.retain_grad()
            self.words = x

        hook = model.get_input_embeddings().register_forward_hook(keep)
        self.output = forward(model, inputs)
        hook.remove()
        for x in self.output.attentions:
            x.retain_grad()


# ---------------------------------------------------------------- gradients


def names_in_file(folder, model):
    """The name of each parameter in the checkpoint's file, found by name and verified by value."""
    tensors, named = load_file(folder / "model.safetensors"), {}
    for name, parameter in model.named_parameters():
        for key in (name, f"{model.base_model_prefix}.{name}"):
            key = key if key in tensors else key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            if key in tensors:
                assert torch.equal(tensors[key].to(parameter.dtype), parameter.detach()), (folder.name, key)
                named[name] = key
        # Older versions of transformers gave BERT a pooler even if the file has none.
        assert name in named or name.startswith("pooler."), (folder.name, name)
    rest = set(tensors) - set(named.values())
    # A tied bias has two names; otherwise the unused name remains.
    left = ("position_ids", "lm_head.bias", "lm_head.decoder.bias")
    assert all(key.startswith("cls.") or key.endswith(left) for key in rest), (folder.name, rest)
    return named


@torch.enable_grad()
def gradients(model, named, inputs, pooling):
    model.zero_grad()
    kept = Kept(model, inputs)
    if "end_logits" in kept.output:
        value = kept.output.end_logits[ROW, TOKEN]
    elif pooling is None:
        value = kept.output.logits[ROW, TOKEN, LABEL] if kept.output.logits.dim() == 3 else kept.output.logits[ROW, LABEL]
    else:
        value = models.pooled(kept.output.last_hidden_state, inputs["attention_mask"])[pooling][ROW, COMPONENT]
    value.backward()
    results = {"value": value.detach().reshape(1), "embeddings": kept.words.grad}
    for i, x in enumerate(kept.output.attentions):
        # A key that a query does not see has probability 0 and gradient 0. (Queries of padding may see only padding,
        # but are not used.)
        results[f"attentions.{i}"] = torch.where(x.detach() == 0, 0, x.grad)
    unused = []
    for name, parameter in model.named_parameters():
        if name in named:
            if parameter.grad is None:
                unused.append(named[name])
            results[f"parameters.{named[name]}"] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
    return results, unused


def expect(golden, case, name, value32, value64):
    """Stores a result. For large ones only the rows that are not 0, and one that is."""
    flat = value64.reshape(-1, value64.shape[-1])
    some = flat.any(-1)
    if value64.numel() <= common.SMALL or some.all():
        golden.expect(case, name, value32, value64)
        return
    some[(~some).nonzero()[0]] = True
    case["expected"][name] = common.max_error(value32, value64)
    total = math.fsum(value64.flatten().tolist())
    case.setdefault("rows", {})[name] = {"dims": list(value64.shape), "rows": some.nonzero().flatten().tolist(), "sum": total}
    golden.add(f"{case['name']}/expected.{name}", flat[some])


def write_gradients(file, names):
    golden = common.GoldenFile(transformers=transformers.__version__)
    for name in names:
        folder, pooling = models.FOLDER / name, (POOLING | LATER_POOLING).get(name)
        inputs, tokens = models.encode(folder, BATCH, 64)
        assert 0 < inputs["attention_mask"][ROW].sum() < inputs["attention_mask"].shape[1]
        single, double = models.load(folder, torch.float32), models.load(folder, torch.float64)
        named = names_in_file(folder, single)
        values32, unused = gradients(single, named, inputs, pooling)
        with models.modernbert_in_float64():
            values64, _ = gradients(double, named, inputs, pooling)
        target = {"row": ROW, "label": LABEL} if pooling is None else {"row": ROW, "component": COMPONENT}
        if name in (*OF_TOKENS, *DEBERTAS[1:]) or name.endswith(("-mlm", "-ner")):
            target["token"] = TOKEN
        options = {"target": target} if pooling is None else {"target": target, "pooling": pooling}
        case = common.Case(golden, name, "model_gradients", options=options)
        case.json |= {"texts": BATCH, "tokens": tokens, "unused": unused}
        for key, x in inputs.items():
            case.store(key, x)
        kept = inputs["attention_mask"].bool()
        for key, value in values64.items():
            assert value.dtype == torch.float64
            if key == "embeddings":
                assert not value[~kept].any() and not value[[r for r in range(len(BATCH)) if r != ROW]].any()
            if key.startswith("attentions"):
                assert not value.transpose(1, 2)[~kept].any()
            expect(golden, case.json, key, values32[key], value)
            assert case.json["expected"][key] <= 1e-4 * max(1, float(value.abs().max())), (name, key, case.json["expected"][key])
    golden.write(models.FOLDER / file, limit=1_500_000)


# ---------------------------------------------------------------- attribution


class Text:
    """A text and f, the logit of a label, in the dtype of the model."""

    def __init__(self, model, ids, types, special, target):
        self.model, self.ids, self.types, self.special, self.target = model, ids, types, special, target
        self.words = model.get_input_embeddings()
        self.length = ids.shape[1]

    def f(self, ids, types=None):
        """f for each row of ids (B,L)."""
        types = self.types.expand(ids.shape) if types is None else types
        return forward(self.model, {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": types}).logits[:, self.target]

    def f_of_words(self, words):
        """f for word embeddings (B,L,E). Everything else, including positions, is that of the text's ids."""
        hook = self.words.register_forward_hook(lambda *_: words)
        value = self.f(self.ids.expand(words.shape[0], -1))
        hook.remove()
        return value

    def by_captum(self, steps, pad):
        """Scores by Captum. It uses the ids of the baseline only for their embeddings; along the path the ids are those of the text."""
        method = LayerIntegratedGradients(self.f, self.words)
        baseline = torch.where(self.special, self.ids, pad)
        return method.attribute(self.ids, baseline, n_steps=steps, method="gausslegendre").detach().sum(-1)[0]

    def integrated_gradients(self, steps, pad):
        """Scores, f of the baseline, and |sum - (f - f of the baseline)| / |f - f of the baseline|."""
        x = self.words(self.ids).detach()
        baseline = torch.where(self.special[..., None], x, self.words.weight[pad].detach())
        nodes, weights = np.polynomial.legendre.leggauss(steps)
        places, weights = (torch.from_numpy(values).to(x.dtype).reshape(-1, 1, 1) / 2 for values in (nodes + 1, weights))
        with torch.enable_grad():
            path = (baseline + places * (x - baseline)).requires_grad_()
            slopes = torch.autograd.grad(self.f_of_words(path).sum(), path)[0]
        scores = lambda weights: ((x - baseline)[0] * (weights * slopes).sum(0)).sum(-1)
        exact = scores(weights)
        if x.dtype == torch.float64:
            captums = self.by_captum(steps, pad)
            common.assert_close(captums, scores(weights.float().double()), "Captum's, weights rounded as its are", 1e-10)
            common.assert_close(captums, exact, "Captum's", 1e-6)
        at_baseline = self.f_of_words(baseline)[0]
        change = self.f_of_words(x)[0] - at_baseline
        return exact, at_baseline, float(((exact.sum() - change) / change).abs())

    def leave_one_out(self, value):
        """The decrease of f without each token; later tokens move up."""
        scores = torch.zeros(self.length, dtype=value.dtype)
        for i in range(self.length):
            if not self.special[0, i]:
                ids, types = (torch.cat((x[:, :i], x[:, i + 1 :]), 1) for x in (self.ids, self.types))
                scores[i] = value - self.f(ids, types)[0]
        return scores

    @torch.enable_grad()
    def by_gradients(self):
        """f, and the scores that follow from one forward and backward."""
        inputs = {"input_ids": self.ids, "attention_mask": torch.ones_like(self.ids), "token_type_ids": self.types}
        self.model.zero_grad()
        kept = Kept(self.model, inputs)
        value = kept.output.logits[0, self.target]
        value.backward()
        eye = torch.eye(self.length, dtype=value.dtype)
        rollout, relevance = eye, eye
        for x in kept.output.attentions:
            rollout = (0.5 * x.detach()[0].mean(0) + 0.5 * eye) @ rollout
            relevance = relevance + (x.grad * x.detach())[0].clamp(min=0).mean(0) @ relevance
        # All families use the first token, except for a ModernBERT that specifies otherwise.
        pooled = slice(None) if getattr(self.model.config, "classifier_pooling", "cls") == "mean" else slice(1)
        return value.detach(), {
            "gradient_x_input": (kept.words.grad * kept.words).detach()[0].sum(-1),
            "attention_rollout": rollout[pooled].mean(0),
            "attention_gradient": relevance[pooled].mean(0),
        }


def attribute(model, ids, types, special, target, pad):
    """The scores (L) by name, and numbers as float: f, f of the baseline, deltas."""
    text = Text(model, ids, types, special, target)
    value, scores = text.by_gradients()
    numbers = {}
    for name, steps in STEPS.items():
        scores[name], at_baseline, numbers[f"delta_{steps}"] = text.integrated_gradients(steps, pad)
    scores["leave_one_out"] = text.leave_one_out(value)
    return scores, {"value": value, "baseline": at_baseline, **numbers}


def read(folder, text):
    """ids, types and special (1,L), which marks the special tokens; the tokens and the id of padding."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoding = tokenizer.backend_tokenizer.encode(text)
    ids, types, special = (torch.tensor([x]) for x in (encoding.ids, encoding.type_ids, encoding.special_tokens_mask))
    return ids, types, special.bool(), encoding.tokens, tokenizer.pad_token_id


def write_attribution():
    golden = common.GoldenFile(transformers=transformers.__version__, captum=captum.__version__)
    for name in (*FAMILIES, "tiny-modernbert-2024", "sentiment"):
        folder = models.FOLDER / name
        single, double = models.load(folder, torch.float32), models.load(folder, torch.float64)
        for number, text in enumerate(FILMS if name == "sentiment" else TEXTS):
            ids, types, special, tokens, pad = read(folder, text)
            with models.modernbert_in_float64():
                inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": types}
                answer = int(forward(double, inputs).logits.argmax())
            other = (answer + 1) % double.config.num_labels
            for target in (answer, other) if number == 0 else (answer,):
                values32, _ = attribute(single, ids, types, special, target, pad)
                with models.modernbert_in_float64():
                    values64, numbers = attribute(double, ids, types, special, target, pad)
                options = {"target": target, "answer": answer, "pad": pad}
                case = common.Case(golden, f"{name}/{number}/{target}", "attribution", checkpoint=name, text=text, tokens=tokens, options=options)
                case.json |= {key: float(x) for key, x in numbers.items()}
                for key, x in (("input_ids", ids), ("token_type_ids", types), ("special", special)):
                    case.store(key, x)
                for key, value in values64.items():
                    assert value.dtype == torch.float64 and value.shape == (len(tokens),)
                    golden.expect(case.json, key, values32[key], value)
                    assert case.json["expected"][key] <= 1e-4 * max(1, float(value.abs().max())), (case.name, key, case.json["expected"][key])
    golden.write(models.FOLDER / "attribution.safetensors", limit=200_000)


def generate():
    write_gradients("gradients.safetensors", (*WITH_HEAD, *POOLING))
    write_gradients("token_gradients.safetensors", (*OF_TOKENS, *OTHERS))
    write_gradients("deberta_gradients.safetensors", DEBERTAS)
    write_gradients("later_gradients.safetensors", LATER)
    write_attribution()


if __name__ == "__main__":
    generate()
