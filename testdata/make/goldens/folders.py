"""testdata/models/folders.safetensors: results of sentence-transformers and transformers for the small checkpoints with changed or additional files.

A case names a checkpoint and the changes of its folder: an object is merged into a JSON file (RFC 7386), a list replaces it, null removes it. `base`
is the sub-folder that contains the checkpoint. The weights of a folder such as 2_Dense are tensors of the case: NAME/2_Dense/linear.weight."""

import json
import shutil
import tempfile
from pathlib import Path

import sentence_transformers
import torch
import transformers
from safetensors.torch import save_file

import common
from models import FOLDER, LONG, PAIRS, TEXTS, modernbert_in_float64

transformers.utils.logging.set_verbosity_error()

MODULES = {
    "Transformer": "sentence_transformers.models.Transformer",
    "Pooling": "sentence_transformers.models.Pooling",
    "Dense": "sentence_transformers.models.Dense",
    "Normalize": "sentence_transformers.models.Normalize",
}
PROMPTS = {"prompts": {"query": "was it good: ", "topic": "the film "}, "default_prompt_name": "query"}
TYPES = ["tiny-bert", PAIRS, "logits"]


def modules(*kinds, base=""):
    paths = [base, *(f"{i}_{kind}" for i, kind in enumerate(kinds[1:], 1))]
    return [{"idx": i, "name": str(i), "path": path, "type": MODULES[kind]} for i, (kind, path) in enumerate(zip(kinds, paths))]


def pooling(*modes, **others):
    """The format of older files, with a flag for each mode."""
    return {"word_embedding_dimension": 32, **{f"pooling_mode_{mode}": True for mode in modes}, **others}


def pooled(value, *kinds):
    return {"modules.json": modules("Transformer", "Pooling", *kinds), "1_Pooling/config.json": value}


def dense(size, inputs, activation, bias):
    return {"in_features": inputs, "out_features": size, "bias": bias, "activation_function": f"torch.nn.modules.{activation}"}


def template(checkpoint):
    """BERT's template for pairs, with the special tokens of the file."""
    ids = {token["content"]: token["id"] for token in json.loads((FOLDER / checkpoint / "tokenizer.json").read_text())["added_tokens"]}
    special = lambda token, kind: {"SpecialToken": {"id": token, "type_id": kind}}
    text = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    single = [special("<s>", 0), text("A", 0), special("</s>", 0)]
    known = {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("<s>", "</s>")}
    processor = {"type": "TemplateProcessing", "single": single, "pair": [*single, text("B", 1), special("</s>", 1)], "special_tokens": known}
    return {"post_processor": {"trim_offsets": None, "add_prefix_space": None, "cls": None, "sep": None, **processor}}


def cases():
    """name, checkpoint, texts, kind of result, changed files, options of embed, then base if the case has it."""
    prompts = {"config_sentence_transformers.json": PROMPTS}
    for name, options in (
        ("the default prompt", {}),
        ("a prompt by its name", {"promptName": "topic"}),
        ("a prompt that every model has", {"promptName": "document"}),
        ("a prompt of the caller", {"prompt": "a book: "}),
        ("an empty prompt of the caller", {"prompt": ""}),
        ("a prompt and a name", {"prompt": "a book: ", "promptName": "topic"}),
    ):
        yield name, "tiny-bert-cls", TEXTS, "embedding", prompts, options
    for mode in ("mean_tokens", "max_tokens", "cls_token", "lasttoken", "weightedmean_tokens", "mean_sqrt_len_tokens"):
        value = pooling(mode, include_prompt=False)
        yield f"a prompt that {mode} leaves out", "tiny-bert", TEXTS, "embedding", {**pooled(value), **prompts}, {}
    for mode in ("lasttoken", "weightedmean_tokens", "mean_sqrt_len_tokens"):
        yield f"pooling {mode}", "tiny-bert", TEXTS, "embedding", pooled(pooling(mode)), {}
    yield "pooling of no mode", "tiny-bert", TEXTS, "embedding", pooled({"word_embedding_dimension": 32}), {}
    yield "two poolings by their flags", "tiny-bert", TEXTS, "embedding", pooled(pooling("mean_tokens", "cls_token"), "Normalize"), {}
    several = {"embedding_dimension": 32, "pooling_mode": ["weightedmean", "lasttoken", "max"]}
    yield "three poolings by their names", "tiny-mpnet", TEXTS, "embedding", pooled(several), {}
    one = {**pooled(pooling("mean_tokens"), "Dense", "Normalize"), "2_Dense/config.json": dense(20, 32, "activation.Tanh", True)}
    yield "Dense", "tiny-bert", TEXTS, "embedding", one, {}
    two = {**pooled(pooling("mean_tokens", "max_tokens"), "Dense"), "2_Dense/config.json": dense(12, 64, "linear.Identity", False)}
    yield "Dense after two poolings", "tiny-distilbert", TEXTS, "embedding", two, {}
    wide, narrow = dense(96, 24, "linear.Identity", False), dense(24, 96, "activation.Tanh", True)
    both = {**pooled(pooling("mean_tokens"), "Dense", "Dense", "Normalize"), "2_Dense/config.json": wide, "3_Dense/config.json": narrow}
    both["config.json"] = {"architectures": ["Gemma3TextModel"], "use_bidirectional_attention": True}
    both["tokenizer_config.json"] = {"pad_token": "<|endoftext|>"}
    yield "two Dense, as in EmbeddingGemma", "tiny-gemma-3", TEXTS, "embedding", both, {}
    for kinds in ((), ("Normalize",)):
        cut = {**pooled(pooling("mean_tokens"), *kinds), "config_sentence_transformers.json": {"truncate_dim": 8}}
        yield " ".join(("truncate_dim", *kinds)), "tiny-bert", TEXTS, "embedding", cut, {}
        yield " ".join(("truncate_dim, to length 1", *kinds)), "tiny-bert", TEXTS, "embedding", cut, {"normalize": True}
    old = {"modules.json": modules("Transformer", "Pooling", base="0_Transformer"), "1_Pooling/config.json": pooling("cls_token")}
    length = {"0_Transformer/sentence_bert_config.json": {"max_seq_length": 6}}
    yield "an old folder", "tiny-bert-legacy", TEXTS, "embedding", {**old, **length}, {}, {"base": "0_Transformer"}

    yield "pairs without token types", *TYPES, {"tokenizer_config.json": {"model_input_names": ["input_ids", "attention_mask"]}}, {}
    yield "pairs with token types", *TYPES, {"tokenizer_config.json": {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}}, {}
    generic = {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}}
    yield "pairs by a class for any tokenizer", *TYPES, generic, {}
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    yield "pairs by a class for any tokenizer, with token types", *TYPES, {"tokenizer_config.json": named}, {}
    # Its own class would replace the template.
    yield "RoBERTa with BERT's template", "tiny-roberta", PAIRS, "logits", {"tokenizer.json": template("tiny-roberta"), **generic}, {}

    # tokenizer.json applies if tokenizer_config.json has no value and its class no default.
    cased = {"tokenizer.json": {"normalizer": {"lowercase": False, "handle_chinese_chars": False, "strip_accents": False}}}
    silent = {"do_lower_case": None, "strip_accents": None, "tokenize_chinese_chars": None}
    texts = [*TEXTS, "Le garçon a mangé UNE crêpe, 中文很好"]
    yield "capitals, not said", "tiny-bert", texts, "logits", {**cased, "tokenizer_config.json": silent}, {}
    yield "capitals, without tokenizer_config.json", "tiny-bert", texts, "logits", {**cased, "tokenizer_config.json": None}, {}
    yield "capitals, by no class", "tiny-mpnet", texts, "logits", {**cased, "tokenizer_config.json": {**silent, "tokenizer_class": None}}, {}
    kept = {**silent, "tokenizer_class": "PreTrainedTokenizerFast"}
    yield "capitals, by a class for any tokenizer", "tiny-bert", texts, "logits", {**cased, "tokenizer_config.json": kept}, {}

    for name in ("linear.Identity", "activation.Sigmoid"):
        path = f"torch.nn.modules.{name}"
        yield f"scores by {name}", "tiny-bert", PAIRS, "scores", {"config.json": {"sentence_transformers": {"activation_fn": path}}}, {}
        yield f"scores by {name}, as it was", "tiny-bert", PAIRS, "scores", {"config.json": {"sbert_ce_default_activation_function": path}}, {}
        beside = {"model_type": "CrossEncoder", "activation_fn": path}
        task = {"transformer_task": "sequence-classification", "module_output_name": "scores"}
        task["modality_config"] = {"text": {"method": "forward", "method_output_name": "logits"}}
        files = {"modules.json": modules("Transformer"), "config_sentence_transformers.json": beside, "sentence_bert_config.json": task}
        yield f"scores by {name}, of a new folder", "tiny-bert", PAIRS, "scores", files, {}

    config = lambda **values: {"config.json": values}
    yield "labels from 1", "tiny-bert", PAIRS, "logits", config(id2label={"0": None, "3": "best"}), {}
    yield "no type_vocab_size", *TYPES, config(type_vocab_size=None), {}
    for width in (0, 1):
        yield f"local attention {width}", "tiny-modernbert", LONG, "logits", config(local_attention=width), {}
    for name in ("tanh", "mish", "quick_gelu"):
        yield f"hidden_act {name}", "tiny-bert", TEXTS, "logits", config(hidden_act=name), {}
    for name in ("tanh", "mish"):
        yield f"hidden_activation {name}", "tiny-modernbert", LONG, "logits", config(hidden_activation=name), {}


def merged(value, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result


def write_folder(place, checkpoint, files, base, weights):
    shutil.copytree(FOLDER / checkpoint, place / base, dirs_exist_ok=True)
    for name, patch in files.items():
        path = place / name
        path.parent.mkdir(exist_ok=True)
        if patch is None:
            path.unlink()
        else:
            path.write_text(json.dumps(merged(json.loads(path.read_text()) if path.exists() else None, patch)))
    for folder in {name.split("/")[0] for name in weights}:
        of_folder = {name.removeprefix(f"{folder}/"): value for name, value in weights.items() if name.startswith(f"{folder}/")}
        save_file(of_folder, place / folder / "model.safetensors")


def compute(place, what, texts, options, dtype):
    torch.manual_seed(0)
    if what == "embedding":
        model = sentence_transformers.SentenceTransformer(str(place), device="cpu", model_kwargs={"dtype": torch.float32}).to(dtype)
        names = {"prompt": "prompt", "promptName": "prompt_name", "normalize": "normalize_embeddings"}
        return model.encode(texts, convert_to_tensor=True, show_progress_bar=False, **{names[key]: value for key, value in options.items()})
    if what == "scores":
        model = sentence_transformers.CrossEncoder(str(place), device="cpu", model_kwargs={"dtype": torch.float32}).to(dtype)
        return model.predict(texts, convert_to_tensor=True, show_progress_bar=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(place, dtype=torch.float32, attn_implementation="eager").to(dtype).eval()
    return model(**tokenizer(texts, padding=True, return_tensors="pt")).logits


def generate():
    golden = common.GoldenFile(transformers=transformers.__version__, sentence_transformers=sentence_transformers.__version__)
    for name, checkpoint, texts, what, files, options, *others in cases():
        given = others[0] if others else {}
        weights, draw = {}, common.Draw(name)
        for file, config in files.items():
            if not file.endswith("_Dense/config.json"):
                continue
            part = file.replace("config.json", "linear.")
            weights[f"{part}weight"] = draw.normal(config["out_features"], config["in_features"], std=config["in_features"] ** -0.5)
            if config["bias"]:
                weights[f"{part}bias"] = draw.normal(config["out_features"], std=0.2)
        case = {"name": name, "op": "folder", "checkpoint": checkpoint, "files": files, "texts": texts, "options": options, **given, "expected": {}}
        for key, value in weights.items():
            golden.add(f"{name}/{key}", value)
        with tempfile.TemporaryDirectory() as place:
            write_folder(Path(place), checkpoint, files, given.get("base", ""), weights)
            single = compute(Path(place), what, texts, options, torch.float32)
            with modernbert_in_float64():
                double = compute(Path(place), what, texts, options, torch.float64)
        assert double.dtype == torch.float64, name
        golden.cases.append(case)
        golden.expect(case, what, single, double)
        assert case["expected"][what] < 1e-4, (name, case["expected"])
    golden.write(FOLDER / "folders.safetensors", limit=100_000)


if __name__ == "__main__":
    generate()
