"""Writes encoders of the families of cases.json, all of one size, to build/bench/models/families/:

  NAME/              config.json, model.safetensors and a tokenizer, for attn
  NAME.onnx          as torch's exporter leaves it: ids, mask (B,S) -> y (B,S,E); what onnxruntime fuses in a session it finds by itself
  NAME.fused.onnx    after onnxruntime's transformer optimizer, as its users run it

The weights are drawn from a fixed seed. What transformers has is its own; Jina's second encoder is the plain formulation of the goldens.
Every graph is compared with PyTorch before it gets its name.
"""

import hashlib
import json
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnxruntime
import torch
import transformers
from onnxruntime.transformers import optimizer
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench" / "models" / "families"
CASES = ROOT / "benchmarks" / "cases.json"
TOKENIZER = ROOT / "testdata" / "models" / "tiny-bert" / "tokenizer.json"
PLAIN = ROOT / "tools" / "goldens" / "plain_encoders.py"
SOURCES = (pathlib.Path(__file__), pathlib.Path(__file__).with_name("requirements.txt"), CASES, TOKENIZER, PLAIN)
TOLERANCE = 1e-4

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
sys.dont_write_bytecode = True  # writes no files except models
sys.path.insert(0, str(PLAIN.parent))
import plain_encoders  # noqa: E402


def made(family, layers, E, H, F):
    """The family's encoder, without a pooler if possible."""
    t = transformers
    sizes = {"vocab_size": 1000, "hidden_size": E, "num_hidden_layers": layers, "num_attention_heads": H, "intermediate_size": F}
    match family:
        case "bert":
            return t.BertModel(t.BertConfig(**sizes, attn_implementation="eager"), add_pooling_layer=False)
        case "albert":
            return t.AlbertModel(t.AlbertConfig(**sizes, hidden_act="gelu", attn_implementation="eager"), add_pooling_layer=False)
        case "deberta-v2":  # as microsoft/deberta-v3-base
            positions = {"relative_attention": True, "position_buckets": 256, "max_relative_positions": -1, "pos_att_type": ["p2c", "c2p"]}
            positions |= {"share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False, "type_vocab_size": 0}
            return t.DebertaV2Model(t.DebertaV2Config(**sizes, **positions))
        case "nomic_bert":
            return t.NomicBertModel(t.NomicBertConfig(**sizes, attn_implementation="eager"), add_pooling_layer=False)
        case "gte":
            return t.GteModel(t.GteConfig(**sizes, attn_implementation="eager"), add_pooling_layer=False)
        case "modernbert":  # as answerdotai/ModernBERT-base
            ends = {f"{token}_token_id": 0 for token in ("pad", "bos", "eos", "cls", "sep")}
            return t.ModernBertModel(t.ModernBertConfig(**sizes, **ends, attn_implementation="eager"))
        case "jina_bert":
            more = {"model_type": "bert", "architectures": ["JinaBertModel"], "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
            more |= {"feed_forward_type": "geglu", "position_embedding_type": "alibi", "pad_token_id": 0, "emb_pooler": "mean"}
            more |= {"max_position_embeddings": 8192}
            return plain_encoders.JinaBert(sizes | more)
    raise SystemExit(f"no family '{family}'")


class LastHiddenState(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state


def inputs(B, S):
    generator = torch.Generator().manual_seed(S)
    ids = torch.randint(5, 1000, (B, S), generator=generator)
    return {"ids": ids, "mask": (torch.arange(S) < S - torch.arange(B)[:, None]).long()}


def check(path, model):
    """Compares a graph with PyTorch, except at padded positions."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst = 0.0
    for B, S in ((1, 5), (3, 140)):
        given = inputs(B, S)
        with torch.inference_mode():
            expected = model(**given).numpy()
        y = session.run(None, {name: value.numpy() for name, value in given.items()})[0]
        worst = max(worst, float(np.abs(y - expected)[given["mask"].bool().numpy()].max()))
    if not worst < TOLERANCE:
        raise SystemExit(f"{path}: {worst:.2e} away from PyTorch")
    return worst


def write(name, family, layers, E, H, F):
    torch.manual_seed(1)
    model = made(family, layers, E, H, F)
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if isinstance(model, plain_encoders.Encoder):
        (folder / "config.json").write_text(json.dumps(vars(model.config)))
        save_file(model.state_dict(), folder / "model.safetensors")
    else:
        model.save_pretrained(folder)
    shutil.copy(TOKENIZER, folder)

    model = LastHiddenState(model).eval()
    given = inputs(2, 12)
    axes = {0: "B", 1: "S"}
    plain, fused = FOLDER / f"{name}.onnx", FOLDER / f"{name}.fused.onnx"
    unfinished = FOLDER / f"{name}.part"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constants in a trace: other sizes are compared with PyTorch
        torch.onnx.export(model, tuple(given.values()), unfinished, input_names=list(given), output_names=["y"], opset_version=17,
                          dynamic_axes={key: axes for key in (*given, "y")}, dynamo=False)
    print(f"{name}.onnx: within {check(unfinished, model):.1e} of PyTorch")
    unfinished.rename(plain)
    optimizer.optimize_model(str(plain), "bert", num_heads=H, hidden_size=E, opt_level=0).save_model_to_file(str(unfinished))
    print(f"{name}.fused.onnx: within {check(unfinished, model):.1e} of PyTorch")
    unfinished.rename(fused)


def main():
    table = json.loads(CASES.read_text())
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Keeps models written by the same sources.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()
    stamp = FOLDER / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for name, shape in table["families"].items():
        write(name, **shape)
    stamp.write_text(digest)


if __name__ == "__main__":
    main()
