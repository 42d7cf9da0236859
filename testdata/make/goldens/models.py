"""testdata/models: for every family a small checkpoint with random weights, written by transformers, and its golden numbers."""

import json
import shutil
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import tokenizers
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from transformers.models.deberta_v2 import modeling_deberta_v2
from transformers.models.gte import modeling_gte
from transformers.models.modernbert import modeling_modernbert
from transformers.models.nomic_bert import modeling_nomic_bert

import common
import plain_encoders
import tiny_tokenizers

FOLDER = common.TESTDATA / "models"
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXTS = ["A happy person smiles.", "", "Was it bad?", "The film was not bad, it was good!", "Überraschend schön 😀"]
PAIRS = [("The old man sleeps.", "He is tired."), ("Is it good?", "No, it was bad.")]
# Long enough for every bucket up to 32 of MPNet's positions, and for many windows of ModernBERT.
LONG = ["The young woman reads a book about the sea while the children were playing in the garden, talking and laughing."]
# A padding token in the user's text: families that derive positions from ids give it none.
TYPED = ["A <pad> happy <pad><pad> person.", "Is it <mask> good?"]

SIZES = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": 2, "max_position_embeddings": 64}
DISTILBERT_SIZES = {"dim": 32, "n_heads": 4, "hidden_dim": 48, "n_layers": 2, "max_position_embeddings": 64}
ROBERTA_SIZES = {**SIZES, "max_position_embeddings": 66, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
MOODS = ["negative", "neutral", "positive"]
# Options of a forward that change results: causal attention, and factors for the results of heads (layers,H).
EDITED = {"isCausal": True, "headMask": [[1, 0, 0.5, 1], [0, -2, 1, 0]]}


def labels(names):
    return {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}


def edit(folder, change, name="config.json"):
    """Changes a JSON file of the folder and writes it in the format of transformers."""
    path = folder / name
    path.write_text(json.dumps(change(json.loads(path.read_text())), indent=2, sort_keys=True) + "\n")


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


# ---------------------------------------------------------------- weights


def draw(name, key, shape):
    """Draws values with which every parameter matters: norms are not 1 and 0, and a linear layer scales its input by about 1.4."""
    values = common.Draw(f"{name}/{key}").normal(*shape)
    if ("norm" in key.lower() or "_ln." in key) and key.endswith("weight"):
        return 1 + 0.25 * values
    if key.endswith("bias"):
        return 0.2 * values
    if "relative_attention_bias" in key or "rel_embeddings" in key:
        return values
    if "embeddings" in key:
        return (0.6 if "word" in key or "tok_" in key else 0.3) * values
    # Weights that are applied repeatedly or multiplied would grow.
    gain = 1 if any(part in key for part in ("albert_layers", "self_attn", "gate", "fc1", "up_proj")) else 1.4
    return gain * shape[-1] ** -0.5 * values


def save(name, model, tokenizer, dtype, first_names=True):
    """first_names: use the original names of a family's tensors if transformers has renamed them."""
    model.load_state_dict({key: draw(name, key, tuple(value.shape)) for key, value in model.state_dict().items()})
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    if isinstance(model, plain_encoders.Encoder):
        folder.mkdir()
        save_file({key: value.to(dtype).contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors", metadata={"format": "pt"})
        config = {key: value for key, value in vars(model.config).items() if key != "problem_type"}
        write_json(folder / "config.json", config | {"torch_dtype": str(dtype).removeprefix("torch.")})
    else:
        model.to(dtype).save_pretrained(folder, save_original_format=first_names)
    tokenizer.save_pretrained(folder)
    return folder


# ---------------------------------------------------------------- folders that current transformers does not write


def legacy(folder):
    """Converts the folder to the format of google-bert/bert-base-uncased: names from TensorFlow, positions as a tensor, pre-training heads."""
    model = transformers.AutoModelForPreTraining.from_pretrained(folder)
    tied = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    rename = lambda key: key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    state = {rename(key): value.contiguous() for key, value in model.state_dict().items() if key not in tied}
    state["bert.embeddings.position_ids"] = torch.arange(model.config.max_position_embeddings)[None]
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    kept = ("attention_probs_dropout_prob", "hidden_act", "hidden_dropout_prob", "hidden_size", "initializer_range", "intermediate_size")
    kept += ("layer_norm_eps", "max_position_embeddings", "model_type", "num_attention_heads", "num_hidden_layers", "pad_token_id")
    kept += ("type_vocab_size", "use_cache", "vocab_size")
    old = {"architectures": ["BertForMaskedLM"], "gradient_checkpointing": False, "position_embedding_type": "absolute"}
    edit(folder, lambda config: {**{key: config[key] for key in kept}, **old, "transformers_version": "4.6.0.dev0"})
    edit(folder, lambda _: {"do_lower_case": True, "model_max_length": 64}, "tokenizer_config.json")


def modernbert_2024(folder):
    """Converts ModernBERT's configuration to its published form."""

    def change(config):
        rope = config.pop("rope_parameters")
        del config["layer_types"]
        config["torch_dtype"] = config.pop("dtype")
        config["global_rope_theta"] = rope["full_attention"]["rope_theta"]
        config["local_rope_theta"] = rope["sliding_attention"]["rope_theta"]
        old = {"global_attn_every_n_layers": 2, "gradient_checkpointing": False, "layer_norm_eps": 1e-05, "model_type": "modernbert"}
        old |= {"position_embedding_type": "absolute", "reference_compile": None, "repad_logits_with_grad": False}
        return {**config, **old, "transformers_version": "4.47.0.dev0"}

    edit(folder, change)


def deberta_v3(folder):
    """Converts DeBERTa's configuration to its published form."""

    def change(config):
        del config["pooler_hidden_size"], config["legacy"]
        old = {"pos_att_type": "p2c|c2p", "pooler_hidden_size": 32, "transformers_version": "4.10.0.dev0"}
        return {**config, **old, "torch_dtype": config.pop("dtype")}

    edit(folder, change)


def sentences_cls(folder):
    """Adds the files of older sentence-transformers, which most published models have: the first token, normalised."""
    parts = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind) in enumerate(parts)]
    write_json(folder / "modules.json", modules)
    modes = {f"pooling_mode_{mode}": mode == "cls_token" for mode in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, **modes})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 16, "do_lower_case": True})
    versions = {"sentence_transformers": "2.2.2", "transformers": "4.25.1", "pytorch": "1.13.1"}
    write_json(folder / "config_sentence_transformers.json", {"__version__": versions})


def sentences_mean(folder):
    """Adds the files of sentence-transformers 6.2: the mean, not normalised; the tokenizer's files specify the maximum length."""
    kinds = (("", "base.modules.transformer.Transformer"), ("1_Pooling", "sentence_transformer.modules.pooling.Pooling"))
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.{kind}"} for i, (path, kind) in enumerate(kinds)]
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {"embedding_dimension": 32, "pooling_mode": "mean", "include_prompt": True})
    text = {"method": "forward", "method_output_name": "last_hidden_state"}
    task = {"transformer_task": "feature-extraction", "modality_config": {"text": text}, "module_output_name": "token_embeddings"}
    write_json(folder / "sentence_bert_config.json", task)


# ---------------------------------------------------------------- the checkpoints


def modernbert_config():
    """ModernBERT's tokenizer, and the part of the configuration with token ids and sizes."""
    tokenizer = tiny_tokenizers.modernbert()
    ids = {f"{token}_token_id": tokenizer.convert_tokens_to_ids(f"[{token.upper()}]") for token in ("pad", "cls", "sep")}
    ids |= {"bos_token_id": ids["cls_token_id"], "eos_token_id": ids["sep_token_id"]}
    return tokenizer, {**SIZES, **ids, "vocab_size": len(tokenizer), "num_hidden_layers": 4, "local_attention": 8}


def checkpoints():
    """name, model, tokenizer, dtype of the weights, a change of the folder, {pooling, normalize, max_length} if the folder specifies them."""
    t, bert, f32, f16, bf16 = transformers, tiny_tokenizers.bert(), torch.float32, torch.float16, torch.bfloat16
    moods, plain = labels(MOODS), {}
    names = {"vocab_size": len(bert)}
    yield "tiny-bert", t.BertForSequenceClassification(t.BertConfig(**SIZES, **names, **moods)), bert, f32, None, plain

    tokenizer = tiny_tokenizers.distilbert()
    config = t.DistilBertConfig(**DISTILBERT_SIZES, vocab_size=len(tokenizer), activation="relu", **moods)
    yield "tiny-distilbert", t.DistilBertForSequenceClassification(config), tokenizer, f16, None, plain

    tokenizer = tiny_tokenizers.roberta()
    config = t.RobertaConfig(**ROBERTA_SIZES, vocab_size=len(tokenizer), hidden_act="gelu_new", **moods)
    yield "tiny-roberta", t.RobertaForSequenceClassification(config), tokenizer, bf16, None, plain

    tokenizer = tiny_tokenizers.xlm_roberta()
    config = t.XLMRobertaConfig(**ROBERTA_SIZES, vocab_size=len(tokenizer), hidden_act="gelu_pytorch_tanh", **moods)
    yield "tiny-xlm-roberta", t.XLMRobertaForSequenceClassification(config), tokenizer, f16, None, plain

    mpnet = tiny_tokenizers.mpnet()
    sizes = {**ROBERTA_SIZES, "vocab_size": len(mpnet)}
    del sizes["type_vocab_size"]
    yield "tiny-mpnet", t.MPNetForSequenceClassification(t.MPNetConfig(**sizes, **moods)), mpnet, f32, None, plain

    tokenizer, modern = modernbert_config()
    config = t.ModernBertConfig(**modern, **moods)
    yield "tiny-modernbert", t.ModernBertForSequenceClassification(config), tokenizer, f32, None, plain

    # Few buckets, so that a long text has all kinds of distances.
    deberta = tiny_tokenizers.deberta()
    v3 = {"relative_attention": True, "position_buckets": 8, "max_relative_positions": 40, "share_att_key": True}
    v3 |= {"norm_rel_ebd": "layer_norm", "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    config = t.DebertaV2Config(**SIZES, vocab_size=len(deberta), **v3, **moods)
    yield "tiny-deberta", t.DebertaV2ForSequenceClassification(config), deberta, f32, deberta_v3, plain

    biases = {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}
    biases |= {"hidden_activation": "silu", "classifier_activation": "silu", "classifier_pooling": "mean"}
    kinds = ["full_attention", "sliding_attention"] * 2
    config = t.ModernBertConfig(**modern, **biases, **moods, layer_types=kinds, tie_word_embeddings=True)
    yield "tiny-modernbert-2024", t.ModernBertForSequenceClassification(config), tokenizer, bf16, modernbert_2024, plain

    yield "tiny-bert-legacy", t.BertForPreTraining(t.BertConfig(**SIZES, **names)), bert, f32, legacy, plain

    topics = labels(["film", "music", "food", "weather"])
    config = t.BertConfig(**SIZES, **names, **topics, hidden_act="silu", problem_type="multi_label_classification")
    yield "tiny-bert-multilabel", t.BertForSequenceClassification(config), bert, f16, None, plain

    cls = {"pooling": "cls", "normalize": True, "max_length": 16}
    yield "tiny-bert-cls", t.BertModel(t.BertConfig(**SIZES, **names), add_pooling_layer=False), bert, f16, sentences_cls, cls

    mean = {"pooling": "mean", "normalize": False}
    yield "tiny-mpnet-mean", t.MPNetModel(t.MPNetConfig(**sizes)), mpnet, bf16, sentences_mean, mean


# Heads for tasks other than texts; small, because there are many.
SMALL = {"hidden_size": 16, "intermediate_size": 24}
SMALL_DISTILBERT = {"dim": 16, "hidden_dim": 24}
ENTITIES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]


def heads():
    """The same for models with heads for tokens or multiple choice."""
    t, bert, distilbert, f32, f16, bf16 = transformers, tiny_tokenizers.bert(), tiny_tokenizers.distilbert(), torch.float32, torch.float16, torch.bfloat16
    cased = tiny_tokenizers.bert(lowercase=False)
    names, entities = {"vocab_size": len(bert)}, labels(ENTITIES)
    small = {**SIZES, **SMALL, **names}
    yield "tiny-bert-ner", t.BertForTokenClassification(t.BertConfig(**{**small, "vocab_size": len(cased)}, **entities)), cased, f16
    yield "tiny-bert-mlm", t.BertForMaskedLM(t.BertConfig(**small, hidden_act="relu")), bert, f16
    yield "tiny-bert-qa", t.BertForQuestionAnswering(t.BertConfig(**small)), bert, f32
    yield "tiny-bert-choice", t.BertForMultipleChoice(t.BertConfig(**small)), bert, bf16

    small = {**DISTILBERT_SIZES, **SMALL_DISTILBERT, "vocab_size": len(distilbert)}
    yield "tiny-distilbert-mlm", t.DistilBertForMaskedLM(t.DistilBertConfig(**small)), distilbert, f16
    yield "tiny-distilbert-choice", t.DistilBertForMultipleChoice(t.DistilBertConfig(**small)), distilbert, f16

    roberta = tiny_tokenizers.roberta()
    small = {**ROBERTA_SIZES, **SMALL, "vocab_size": len(roberta)}
    yield "tiny-roberta-mlm", t.RobertaForMaskedLM(t.RobertaConfig(**small)), roberta, bf16
    yield "tiny-roberta-choice", t.RobertaForMultipleChoice(t.RobertaConfig(**small)), roberta, f16

    xlm_roberta = tiny_tokenizers.xlm_roberta()
    small = {**ROBERTA_SIZES, **SMALL, "vocab_size": len(xlm_roberta)}
    yield "tiny-xlm-roberta-ner", t.XLMRobertaForTokenClassification(t.XLMRobertaConfig(**small, **entities)), xlm_roberta, f16

    mpnet = tiny_tokenizers.mpnet()
    small = {**ROBERTA_SIZES, **SMALL, "vocab_size": len(mpnet), "tie_word_embeddings": False}
    del small["type_vocab_size"]
    yield "tiny-mpnet-mlm", t.MPNetForMaskedLM(t.MPNetConfig(**small)), mpnet, f16

    modern, small = modernbert_config(), {**SMALL, "num_hidden_layers": 2}
    yield "tiny-modernbert-mlm", t.ModernBertForMaskedLM(t.ModernBertConfig(**{**modern[1], **small})), modern[0], f16
    yield "tiny-modernbert-qa", t.ModernBertForQuestionAnswering(t.ModernBertConfig(**{**modern[1], **small})), modern[0], f32


def others():
    """Small families that differ from others only in names, an additional table or the width of a table."""
    t, bert, roberta, xlm_roberta = transformers, tiny_tokenizers.bert(), tiny_tokenizers.roberta(), tiny_tokenizers.xlm_roberta()
    f32, f16, moods, entities = torch.float32, torch.float16, labels(MOODS), labels(ENTITIES)
    small = {**ROBERTA_SIZES, **SMALL, "vocab_size": len(xlm_roberta)}
    yield "tiny-camembert", t.CamembertForTokenClassification(t.CamembertConfig(**small, **entities)), xlm_roberta, f16
    small = {**ROBERTA_SIZES, **SMALL, "vocab_size": len(roberta)}
    yield "tiny-data2vec", t.Data2VecTextForSequenceClassification(t.Data2VecTextConfig(**small, **moods)), roberta, f16
    small = {**SIZES, **SMALL, "vocab_size": len(bert)}
    config = t.ErnieConfig(**small, **moods, use_task_id=True, task_type_vocab_size=3)
    yield "tiny-ernie", t.ErnieForSequenceClassification(config), bert, f32
    yield "tiny-electra", t.ElectraForSequenceClassification(t.ElectraConfig(**small, **moods, embedding_size=12)), bert, f32
    yield "tiny-electra-mlm", t.ElectraForMaskedLM(t.ElectraConfig(**small, embedding_size=12)), bert, f16
    yield "tiny-electra-choice", t.ElectraForMultipleChoice(t.ElectraConfig(**small, embedding_size=16)), bert, f16

    albert = tiny_tokenizers.albert()
    small = {**SIZES, **SMALL, "vocab_size": len(albert), "bos_token_id": 2, "eos_token_id": 3}
    config = t.AlbertConfig(**{**small, "num_hidden_layers": 3}, **moods, embedding_size=12)
    yield "tiny-albert", t.AlbertForSequenceClassification(config), albert, f32
    # Two groups of two layers, each used twice: 8 layers in total.
    config = t.AlbertConfig(**{**small, "num_hidden_layers": 4}, num_hidden_groups=2, inner_group_num=2, embedding_size=16, hidden_act="gelu")
    yield "tiny-albert-mlm", t.AlbertForMaskedLM(config), albert, f16


def gated():
    """Post-norm families with a gate, in the form of transformers and in the published form: name, model, tokenizer, dtype, whether tensors have
    their original names, a change of the folder, {pooling, normalize} if the folder specifies them."""
    t, bert, xlm_roberta = transformers, tiny_tokenizers.bert(), tiny_tokenizers.xlm_roberta()
    f32, f16, moods, mean = torch.float32, torch.float16, labels(MOODS), {"pooling": "mean", "normalize": False}
    small = {**SIZES, **SMALL, "vocab_size": len(bert)}
    yield "tiny-nomic", t.NomicBertForSequenceClassification(t.NomicBertConfig(**small, **moods)), bert, f32, False, None, {}
    yield "tiny-nomic-mlm", t.NomicBertForMaskedLM(t.NomicBertConfig(**small)), bert, f16, True, None, {}
    # As in nomic-embed-text-v1.5, except for sizes and half of each head's columns rotated.
    first = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "vocab_size": len(bert), "type_vocab_size": 2, "n_embd": 16, "n_head": 4}
    first |= {"n_inner": 200, "n_layer": 2, "pad_token_id": 0, "n_positions": 64, "max_trained_positions": 48, "activation_function": "swiglu", "prenorm": False}
    first |= {"causal": False, "layer_norm_epsilon": 1e-12, "mlp_fc1_bias": False, "mlp_fc2_bias": True, "qkv_proj_bias": True, "use_rms_norm": False}
    first |= {"parallel_block": False, "rotary_emb_base": 1000, "rotary_emb_fraction": 0.5, "rotary_emb_interleaved": False}
    first |= {"rotary_emb_scale_base": None, "rotary_scaling_factor": None, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    yield "tiny-nomic-2024", plain_encoders.NomicBert(first), bert, f16, True, sentences_mean, mean

    jina = {"architectures": ["JinaBertForSequenceClassification"], "model_type": "bert", **small, "type_vocab_size": 2, "layer_norm_eps": 1e-12}
    jina |= {"auto_map": {"AutoModel": "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"}, "emb_pooler": "mean", "hidden_act": "gelu"}
    jina |= {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.1, "feed_forward_type": "geglu", "position_embedding_type": "alibi", "pad_token_id": 0}
    yield "tiny-jina", plain_encoders.JinaBert(jina | moods), bert, f32, True, None, {}
    jina |= {"architectures": ["JinaBertModel"], "feed_forward_type": "reglu"}
    yield "tiny-jina-mean", plain_encoders.JinaBert(jina), bert, f16, True, sentences_mean, mean

    small["vocab_size"], rope = len(xlm_roberta), {"rope_type": "linear", "rope_theta": 500.0, "factor": 1.5}
    yield "tiny-gte", t.GteForSequenceClassification(t.GteConfig(**small, **moods, rope_parameters=rope)), xlm_roberta, f32, True, None, {}
    config = t.GteConfig(**small, **labels(ENTITIES), type_vocab_size=0, hidden_act="gelu_pytorch_tanh")
    yield "tiny-gte-ner", t.GteForTokenClassification(config), xlm_roberta, f16, False, None, {}
    new = {"architectures": ["NewModel", "NewForTokenClassification"], "model_type": "new", **small, "type_vocab_size": 1, "layer_norm_eps": 1e-12}
    new |= {"hidden_act": "gelu", "layer_norm_type": "layer_norm", "logn_attention_clip1": False, "logn_attention_scale": False, "pack_qkv": True}
    new |= {"position_embedding_type": "rope", "rope_scaling": {"factor": 8.0, "type": "ntk"}, "rope_theta": 200, "unpad_inputs": False}
    new |= {"use_memory_efficient_attention": False, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.0, "pad_token_id": 1}
    yield "tiny-gte-2024", plain_encoders.New(new), xlm_roberta, f16, True, sentences_mean, mean


def check_plain():
    """Checks that the plain encoders equal those of transformers, as far as it has them: all columns of a head rotated, and NTK scaling as linear."""
    for name, change in (
        ("tiny-nomic-2024", {"rotary_emb_fraction": 1.0, "qkv_proj_bias": False, "mlp_fc2_bias": False}),
        ("tiny-gte-2024", {}),
    ):
        config = json.loads((FOLDER / name / "config.json").read_text()) | change
        plain = plain_encoders.KINDS[config["model_type"]](config)
        plain.load_state_dict({key: draw("plain", key, tuple(value.shape)) for key, value in plain.state_dict().items()})
        if name == "tiny-nomic-2024":
            sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 256, "vocab_size": config["vocab_size"]}
            other = transformers.NomicBertModel(transformers.NomicBertConfig(**sizes, max_position_embeddings=64))
        else:
            factor, width = config["rope_scaling"]["factor"], config["hidden_size"] // config["num_attention_heads"]
            rope = {"rope_type": "linear", "rope_theta": config["rope_theta"] * factor, "factor": factor ** (2 / width)}
            sizes = {key: config[key] for key in (*SIZES, "vocab_size", "type_vocab_size", "layer_norm_eps")}
            other = transformers.GteModel(transformers.GteConfig(**sizes, rope_parameters=rope))
        with tempfile.TemporaryDirectory() as folder:
            other.save_pretrained(folder)
            save_file({key: value.contiguous() for key, value in plain.state_dict().items()}, Path(folder) / "model.safetensors", metadata={"format": "pt"})
            other, report = type(other).from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
            assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
        with modernbert_in_float64():
            plain_encoders.agrees_with(plain.eval(), other.eval(), config["vocab_size"])


def debertas():
    """Small DeBERTa models with separate projections of positions, one part of the scores or none, and every kind of head."""
    t, deberta, f32, f16 = transformers, tiny_tokenizers.deberta(), torch.float32, torch.float16
    small = {**SIZES, **SMALL, "vocab_size": len(deberta)}
    relative = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    config = t.DebertaV2Config(**small, **relative, max_relative_positions=6, type_vocab_size=2, **labels(ENTITIES))
    yield "tiny-deberta-ner", t.DebertaV2ForTokenClassification(config), deberta, f16
    part = {"pos_att_type": ["p2c"], "position_buckets": 6, "share_att_key": True, "position_biased_input": False}
    yield "tiny-deberta-mlm", t.DebertaV2ForMaskedLM(t.DebertaV2Config(**small, **{**relative, **part}, legacy=False)), deberta, f16
    part = {"pos_att_type": ["c2p"], "position_buckets": 10, "norm_rel_ebd": "layer_norm"}
    yield "tiny-deberta-qa", t.DebertaV2ForQuestionAnswering(t.DebertaV2Config(**small, **{**relative, **part})), deberta, f32
    # Scores with one part, but the scale of two.
    config = t.DebertaV2Config(**small, pos_att_type=["c2p"], hidden_act="gelu_new", position_biased_input=True)
    yield "tiny-deberta-mlm-legacy", t.DebertaV2ForMaskedLM(config), deberta, f16
    config = t.DebertaV2Config(**small, **relative, pooler_hidden_act="tanh", share_att_key=True)
    yield "tiny-deberta-choice", t.DebertaV2ForMultipleChoice(config), deberta, f16


# ---------------------------------------------------------------- the numbers


@contextmanager
def modernbert_in_float64():
    """Replaces code of transformers that computes in float32 regardless of the model's dtype (rotary positions, ModernBERT's softmax) by float64."""

    def of_all_layers(self, x, position_ids):
        rope, width = self.config.rope_parameters, self.config.hidden_size // self.config.num_attention_heads
        angles = position_ids[..., None].double() * rope["rope_theta"] ** -(torch.arange(0, width, 2).double() / width) / rope.get("factor", 1.0)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    def rotary(self, x, position_ids, layer_type):
        theta, width = self.config.rope_parameters[layer_type]["rope_theta"], self.config.hidden_size // self.config.num_attention_heads
        angles = position_ids[..., None].double() * theta ** -(torch.arange(0, width, 2).double() / width)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    def rotate(q, k, cos, sin, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return tuple(x * cos + modeling_modernbert.rotate_half(x) * sin for x in (q, k))

    def eager(module, query, key, value, attention_mask, scaling, dropout=0.0, **_):
        scores = query @ key.transpose(2, 3) * scaling
        weights = F.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1)
        weights = F.dropout(weights, p=dropout, training=module.training)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    patch = mock.patch.object
    with (
        patch(modeling_modernbert.ModernBertRotaryEmbedding, "forward", rotary),
        patch(modeling_modernbert, "apply_rotary_pos_emb", rotate),
        patch(modeling_modernbert, "eager_attention_forward", eager),
        patch(modeling_nomic_bert.NomicBertRotaryEmbedding, "forward", of_all_layers),
        patch(modeling_gte.GteRotaryEmbedding, "forward", of_all_layers),
    ):
        yield


def load(folder, dtype, **changes):
    """Loads the model with transformers in this dtype, with changed members of the config."""
    if plain_encoders.is_plain(json.loads((folder / "config.json").read_text())):
        return plain_encoders.read(folder).to(dtype)
    config = transformers.AutoConfig.from_pretrained(folder, **changes)
    # The oldest files only as base models, because they have many names.
    kind = getattr(transformers, config.architectures[0]) if folder.name != "tiny-bert-legacy" else transformers.AutoModel
    model, report = kind.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert all("pooler" in key for key in report["missing_keys"]) and not report["mismatched_keys"], (folder.name, report)
    return model.to(dtype).eval()


def encode(folder, texts, max_length):
    """input_ids, attention_mask, token_type_ids (B,L) and the tokens."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(max_length)
    backend.enable_padding(pad_id=tokenizer.pad_token_id, pad_token=tokenizer.pad_token)
    encoded = backend.encode_batch(texts)
    ids = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return {name: torch.tensor([getattr(e, part) for e in encoded]) for name, part in ids.items()}, [e.tokens for e in encoded]


def pooled(x, mask):
    """Mean, first position and maximum of x (B,L,E) over the positions that mask (B,L) keeps."""
    kept = mask.bool().unsqueeze(-1)
    mean = (x * kept).sum(1) / kept.sum(1)
    return {"mean": mean, "cls": x[:, 0], "max": torch.where(kept, x, -torch.inf).amax(1)}


@contextmanager
def scaled_heads(model, factors):
    """Multiplies the results of BERT's heads by factors (layers,H), because transformers 5 has no head_mask."""
    width = model.config.hidden_size // model.config.num_attention_heads

    def times(of_layer):
        return lambda module, args: (args[0] * torch.tensor(of_layer, dtype=model.dtype).repeat_interleave(width), *args[1:])

    layers = zip(model.base_model.encoder.layer, factors, strict=True)
    hooks = [layer.attention.output.register_forward_pre_hook(times(of_layer)) for layer, of_layer in layers]
    yield
    for hook in hooks:
        hook.remove()


@contextmanager
def parts_of_scores():
    """A list that receives the parts of the scores of each of DeBERTa's layers."""
    found, attention = [], modeling_deberta_v2.DisentangledSelfAttention
    of_layer, bias = attention.forward, attention.disentangled_attention_bias

    def forward(self, hidden_states, *args, **kwargs):
        found.append({})
        if self.relative_attention:
            q, k = (self.transpose_for_scores(of(hidden_states), self.num_attention_heads) for of in (self.query_proj, self.key_proj))
            found[-1]["c2c"] = q @ k.transpose(-1, -2) / (q.shape[-1] * (1 + len(self.pos_att_type))) ** 0.5
        return of_layer(self, hidden_states, *args, **kwargs)

    def both(self, *args):
        parts = self.pos_att_type
        for part in parts:
            self.pos_att_type = [part]
            found[-1][part] = bias(self, *args)
        self.pos_att_type = parts
        return bias(self, *args)

    with mock.patch.object(attention, "forward", forward), mock.patch.object(attention, "disentangled_attention_bias", both):
        yield found


def causal(mask, dtype):
    """A causal mask with padding (B,L) in the additive form (B,1,L,L), which transformers uses unchanged."""
    kept = mask.bool()[:, None, None, :] & torch.ones(mask.shape[1], mask.shape[1]).bool().tril()
    return torch.zeros(kept.shape, dtype=dtype).masked_fill(~kept, torch.finfo(dtype).min)


def run(model, inputs, about, forward=None):
    given, forward = dict(inputs), forward or {}
    if model.config.model_type in ("distilbert", "mpnet", "modernbert"):
        del given["token_type_ids"]
    if forward.get("isCausal"):
        given["attention_mask"] = causal(inputs["attention_mask"], model.dtype)
    if "ForMultipleChoice" in model.config.architectures[0]:
        given = {name: value[:, None] for name, value in given.items()}
    with scaled_heads(model, forward["headMask"]) if "headMask" in forward else nullcontext(), parts_of_scores() as parts:
        out = model(**given, output_attentions=True, output_hidden_states=True)
    last = out.hidden_states[-1]
    results = {"lastHiddenState": last}  # the last hidden state, which is not stored twice
    results |= {f"hiddenStates.{i}": x for i, x in enumerate(out.hidden_states[:-1])}
    results |= {f"attentions.{i}": x for i, x in enumerate(out.attentions)}
    for i, of_layer in enumerate(parts):
        results |= {f"traces.{i}.{name}": x.view(out.attentions[i].shape) for name, x in of_layer.items()}
    if "start_logits" in out:
        results["logits"] = torch.stack((out.start_logits, out.end_logits), dim=-1)
    elif "logits" in out and "ForSequenceClassification" not in model.config.architectures[0]:
        results["logits"] = out.logits
    elif "logits" in out:
        several = model.config.problem_type == "multi_label_classification"
        results |= {"logits": out.logits, "probabilities": out.logits.sigmoid() if several else out.logits.softmax(-1)}
    else:
        assert torch.equal(out.last_hidden_state, last)
    pools = pooled(last, inputs["attention_mask"])
    results |= {f"pooled.{name}": x for name, x in pools.items()}
    if "pooling" in about:
        embedding = pools[about["pooling"]]
        results["embedding"] = F.normalize(embedding, dim=-1) if about["normalize"] else embedding
    return results


def real(x, name, mask):
    """The values of a result without those of padding."""
    kept = mask.bool()
    if name.startswith(("lastHiddenState", "hiddenStates")):
        return x[kept]
    if name == "logits" and x.dim() == 3:
        return x[kept]
    if name.startswith(("attentions", "traces")):
        return x.transpose(1, 2)[kept]
    return x


def write_numbers(name, folder, about, cases):
    golden = common.GoldenFile(
        checkpoint=name,
        transformers=transformers.__version__,
        tokenizers=tokenizers.__version__,
        **{key: json.dumps(value) for key, value in about.items()},
    )
    single, double = load(folder, torch.float32), load(folder, torch.float64)
    for case, (texts, options, forward) in cases.items():
        inputs, tokens = encode(folder, texts, options.get("maxLength", about["max_length"]))
        described = {"name": case, "op": "text_model", "options": options, "texts": texts, "tokens": tokens, "inputs": list(inputs), "expected": {}}
        if forward:
            described["forward"] = forward
        golden.cases.append(described)
        for key, value in inputs.items():
            golden.add(f"{case}/{key}", value)
        values32 = run(single, inputs, about, forward)
        with modernbert_in_float64():
            values64 = run(double, inputs, about, forward)
        mask = inputs["attention_mask"]
        for key, value in values64.items():
            if case in ("pairs", "typed") and key.startswith(("hiddenStates", "attentions", "traces")):
                continue
            if "long" in cases and case != "long" and key.startswith("traces"):
                continue
            if forward and key.startswith(("probabilities", "pooled")):
                continue
            assert value.dtype == torch.float64
            error = common.max_error(real(values32[key], key, mask), real(value, key, mask))
            assert error < 1e-4, (name, case, key, error)
            golden.add(f"{case}/expected.{key}", value)
            described["expected"][key] = error
    golden.write(FOLDER / f"{name}.safetensors", limit=300_000)


def relative_positions():
    """DeBERTa's buckets for all distances up to 4096: the distances at which the bucket changes, and the new buckets."""
    settings = []
    for buckets, most in ((256, 512), (8, 40), (6, 64), (10, 64), (2, 512), (3, 512), (17, 100), (32, 128), (64, 64), (255, 1000), (320, 4096), (512, 2048)):
        of = modeling_deberta_v2.make_log_bucket_position(torch.arange(4097), buckets, most).long().tolist()
        back = modeling_deberta_v2.make_log_bucket_position(-torch.arange(4097), buckets, most).long().tolist()
        assert back == [-bucket for bucket in of]
        first = [i for i in range(4097) if i == 0 or of[i] != of[i - 1]]
        settings.append({"position_buckets": buckets, "max_relative_positions": most, "first": first, "bucket": [of[i] for i in first]})
    path = common.TESTDATA / "relative_positions.json"
    path.write_text("[\n" + ",\n".join(json.dumps(each) for each in settings) + "\n]\n")


def generate():
    FOLDER.mkdir(exist_ok=True)
    relative_positions()
    families = ("tiny-bert", "tiny-distilbert", "tiny-roberta", "tiny-xlm-roberta", "tiny-mpnet", "tiny-modernbert", "tiny-deberta")
    for name, model, tokenizer, dtype, finish, said in checkpoints():
        folder = save(name, model, tokenizer, dtype)
        if finish:
            finish(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= 300_000, (name, size)
        print(f"{folder.relative_to(common.ROOT)}: {size} bytes")
        cases = {"texts": (TEXTS, {}, {}), "pairs": (PAIRS, {}, {})}
        if name in families:
            cases["long"] = (LONG, {"maxLength": 40 if name == "tiny-mpnet" else 28}, {})
        if name in ("tiny-roberta", "tiny-xlm-roberta", "tiny-mpnet"):
            cases["typed"] = (TYPED, {}, {})
        if name == "tiny-bert":
            cases["edited"] = (TEXTS[:3], {}, EDITED)
        write_numbers(name, folder, {"max_length": min(64, tokenizer.model_max_length), **said}, cases)
    for name, model, tokenizer, dtype in (*heads(), *others(), *debertas()):
        folder = save(name, model, tokenizer, dtype)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{folder.relative_to(common.ROOT)}: {size} bytes")
        mask = tokenizer.mask_token
        texts, pairs = TEXTS, PAIRS
        if "-mlm" in name:
            texts, pairs = [f"A {mask} person.", f"It is {mask}", "", "Is it?", mask], [(mask, "It is."), ("A", f"{mask} it?")]
        cases = {"texts": (texts, {}, {}), "pairs": (pairs, {}, {})}
        if "deberta" in name and "-mlm" not in name:
            cases["long"] = (LONG, {"maxLength": 28}, {})
        write_numbers(name, folder, {"max_length": min(64, tokenizer.model_max_length)}, cases)
    generate_gated()


def generate_gated():
    for name, model, tokenizer, dtype, first_names, finish, said in gated():
        folder = save(name, model, tokenizer, dtype, first_names)
        if finish:
            finish(folder)
        if name == "tiny-nomic-2024":
            edit(folder, lambda config: config | {"rotary_scaling_factor": 2})  # used beyond max_trained_positions
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{folder.relative_to(common.ROOT)}: {size} bytes")
        texts = [f"A {tokenizer.mask_token} person.", "Is it?", ""] if name.endswith("mlm") else TEXTS
        cases = {"texts": (texts, {}, {}), "pairs": (PAIRS, {}, {})}
        if not name.endswith(("mlm", "ner")):
            cases["long"] = (LONG, {"maxLength": 40}, {})
        write_numbers(name, folder, {"max_length": 48 if name == "tiny-nomic-2024" else 64, **said}, cases)
    check_plain()


if __name__ == "__main__":
    generate()
