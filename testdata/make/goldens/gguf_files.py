"""GGUF files in testdata/gguf: tiny checkpoints as llama.cpp's converter would write them, a file with every block type and its values, and a model
whose tensors have different block types. tokens.json has texts by the pre-tokenizers that attn knows. Runs without torch."""

import json
import zlib
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_SIZES, RopeScalingType
from gguf.quants import dequantize, quantize
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

TESTDATA = Path(__file__).resolve().parents[2]
FOLDER = TESTDATA / "gguf"

LLAMA = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
}  # fmt: skip
GEMMA = LLAMA | {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
GPT2 = {
    "ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down", "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
}  # fmt: skip
NEOX = {
    "input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
    "post_attention_layernorm": "ffn_norm", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down", "gpt_neox.embed_in": "token_embd",
    "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output",
}  # fmt: skip
# By model_type: the name in GGUF and the names of tensors.
ARCHITECTURES = {
    "gpt2": ("gpt2", GPT2), "llama": ("llama", LLAMA), "qwen2": ("qwen2", LLAMA), "qwen3": ("qwen3", LLAMA), "gemma2": ("gemma2", GEMMA),
    "gemma3_text": ("gemma3", GEMMA), "gpt_neox": ("gptneox", NEOX),
}  # fmt: skip
# Tiny checkpoints, with what their config.json must have instead, because GGUF cannot express the rest (configs.json).
CHECKPOINTS = {
    "tiny-gpt2": {}, "tiny-llama": {}, "tiny-qwen2": {"use_sliding_window": False, "layer_types": ["full_attention"] * 2},
    "tiny-qwen3": {}, "tiny-neox": {}, "tiny-neox-serial": {},
    "tiny-gemma-2": {"query_pre_attn_scalar": 8}, "tiny-gemma-3": {"query_pre_attn_scalar": 8}, "tiny-llama-yarn": {},
    "tiny-llama-3": {
        "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
        }
    },
}  # fmt: skip
BLOCK_TYPES = (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q4_K, Type.Q6_K)
# Places of float16 scales in a block.
SCALES = {Type.Q8_0: (0,), Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q4_K: (0, 2), Type.Q6_K: (208,)}
TEXTS = [
    "", " ", "Hello world", "The cat's 12345 hats, we've  2 of them.", "A\n\nB \n C\t\tD", "x=1;y=22;z=333;w=4444", "  leading and trailing  ",
    "I'LL say: IT'S fine", "naïve café, e\u0301tude", "日本語 テスト 3つ", "🙂🙂 !?...", "<|endoftext|>a<|endoftext|> b", "tabs\tand\r\nlines\r\n", "٣٤٥ ½ Ⅷ",
]  # fmt: skip


def gguf_name(name, table):
    base, suffix = name.rsplit(".", 1)
    for layers in ("model.layers.", "transformer.h.", "gpt_neox.layers."):
        if base.startswith(layers):
            number, part = base.removeprefix(layers).split(".", 1)
            return f"blk.{number}.{table[part]}.{suffix}"
    return f"{table[base]}.{suffix}"


def interleave(weight, heads):
    """The order of rows that llama.cpp wants for its kind of RoPE."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def add_tokenizer(writer, tokenizer, config, pre):
    model = tokenizer["model"]
    special = {token["id"] for token in tokenizer["added_tokens"]}
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if i in special else 1 for i in range(len(tokens))])
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(tokenizer["post_processor"]["type"] == "TemplateProcessing")


def start(path, architecture, config):
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(config.get("n_positions", config.get("max_position_embeddings")))
    writer.add_embedding_length(config.get("n_embd", config.get("hidden_size")))
    writer.add_block_count(config.get("n_layer", config.get("num_hidden_layers")))
    writer.add_head_count(config.get("n_head", config.get("num_attention_heads")))
    if architecture == "gpt2":
        writer.add_feed_forward_length(4 * config["n_embd"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
        return writer
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_vocab_size(config["vocab_size"])
    if architecture == "gptneox":
        rope = config.get("rope_parameters", {})
        share = rope.get("partial_rotary_factor", config.get("rotary_pct"))
        writer.add_rope_dimension_count(int(share * (config["hidden_size"] // config["num_attention_heads"])))
        writer.add_rope_freq_base(rope.get("rope_theta", config.get("rotary_emb_base")))
        writer.add_parallel_residual(config["use_parallel_residual"])
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        return writer
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    add_rope(writer, config)
    if architecture.startswith("gemma"):
        writer.add_sliding_window(config["sliding_window"])
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if architecture == "gemma3":
        writer.add_sliding_window_pattern(config["sliding_window_pattern"])
        writer.add_rope_freq_base_swa(config["rope_local_base_freq"])
    return writer


def add_rope(writer, config):
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    writer.add_rope_freq_base(rope.get("rope_theta", config.get("rope_theta")))
    kind = rope.get("rope_type", "default")
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
    if kind == "llama3":
        writer.add_tensor("rope_freqs.weight", divisors(rope, config["rope_theta"], config["head_dim"]))


def divisors(rope, theta, width):
    """As generate_extra_tensors() of llama.cpp's converter."""
    old, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    lengths = 2 * np.pi * theta ** (np.arange(0, width, 2, dtype=np.float32) / width)
    smooth = (old / lengths - low) / (high - low)
    between = 1 / ((1 - smooth) / rope["factor"] + smooth)
    return np.where(lengths < old / high, 1, np.where(lengths > old / low, rope["factor"], between)).astype(np.float32)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_tensors(path):
    """Type and float32 values of each tensor. numpy has no bfloat16."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        first, end = (start + offset for offset in entry["data_offsets"])
        kind = Type[entry["dtype"]]
        values = np.frombuffer(data[first:end], np.uint8)
        tensors[name] = kind, dequantize(values.view({"F32": np.float32, "F16": np.float16}.get(kind.name, np.uint8)), kind).reshape(entry["shape"])
    return tensors


def read(folder, name):
    return json.loads((folder / name).read_text())


def converted(architecture, key, weight, config):
    """A tensor as llama.cpp wants it."""
    heads = config.get("num_attention_heads")
    if architecture == "llama" and "q_proj" in key:
        return interleave(weight, heads)
    if architecture == "llama" and "k_proj" in key:
        return interleave(weight, config["num_key_value_heads"])
    if architecture == "gpt2" and weight.ndim == 2 and ".h." in key:
        return weight.T
    if "query_key_value" in key:
        return weight.reshape(heads, 3, -1, *weight.shape[1:]).swapaxes(0, 1).reshape(weight.shape)
    if architecture.startswith("gemma") and key.endswith("norm.weight"):
        return weight + 1
    return weight


def convert(name, changes):
    """A tiny checkpoint as one file. Matrices keep their type; the rest is float32, as in llama.cpp."""
    folder = TESTDATA / "models" / name
    config = read(folder, "config.json") | changes
    architecture, table = ARCHITECTURES[config["model_type"]]
    writer = start(FOLDER / f"{name}.gguf", architecture, config)
    add_tokenizer(writer, read(folder, "tokenizer.json"), config, "gpt-2")
    for key, (kind, weight) in sorted(read_tensors(folder / "model.safetensors").items()):
        weight = np.ascontiguousarray(converted(architecture, key, weight, config))
        kind = kind if weight.ndim == 2 else Type.F32
        writer.add_tensor(gguf_name(key, table), quantize(weight, kind), raw_dtype=kind)
    finish(writer)


def random_blocks(random, kind, rows, width):
    """Blocks of random bytes, whose scales are numbers of moderate size."""
    values, size = GGML_QUANT_SIZES[kind]
    blocks = np.frombuffer(random.bytes(rows * width // values * size), np.uint8).reshape(-1, size).copy()
    for at in SCALES[kind]:
        scales = (random.random(len(blocks)) * 0.01 - 0.005).astype(np.float16)
        blocks[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def block_types():
    """types.gguf has two rows of each block type, types.safetensors their values."""
    random = np.random.Generator(np.random.PCG64(1))
    writer, values = GGUFWriter(FOLDER / "types.gguf", "types"), {}
    for kind in BLOCK_TYPES:
        if kind in SCALES:
            data = random_blocks(random, kind, 2, 512)
        else:
            data = quantize((random.random((2, 512)) * 2 - 1).astype(np.float32), kind)
        writer.add_tensor(kind.name, data, raw_dtype=kind)
        values[kind.name] = dequantize(data, kind).astype(np.float32).reshape(2, 512)
    finish(writer)
    save_file(values, FOLDER / "types.safetensors")
    (FOLDER / "types.safetensors").chmod(0o644)


def mixed():
    """A Llama of one layer whose tensors have different block types, and the CRC-32 of each tensor's values in transformers' order."""
    folder = TESTDATA / "models" / "tiny-llama"
    config = read(folder, "config.json") | {
        "hidden_size": 256, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1, "head_dim": 32,
    }  # fmt: skip
    random = np.random.Generator(np.random.PCG64(2))
    writer = start(FOLDER / "mixed.gguf", "llama", config)
    writer.add_rope_dimension_count(32)
    add_tokenizer(writer, read(folder, "tokenizer.json"), config, "smollm")
    sums = {}
    for key, kind, rows, width in [
        ("model.embed_tokens", Type.Q4_K, config["vocab_size"], 256),
        ("model.layers.0.self_attn.q_proj", Type.Q4_0, 64, 256),
        ("model.layers.0.self_attn.k_proj", Type.Q6_K, 32, 256),
        ("model.layers.0.self_attn.v_proj", Type.Q4_1, 32, 256),
        ("model.layers.0.self_attn.o_proj", Type.Q8_0, 256, 64),
        ("model.layers.0.mlp.gate_proj", Type.BF16, 32, 256),
        ("model.layers.0.mlp.up_proj", Type.Q4_K, 32, 256),
        ("model.layers.0.mlp.down_proj", Type.Q4_1, 256, 32),
        ("model.layers.0.input_layernorm", Type.F32, 1, 256),
        ("model.layers.0.post_attention_layernorm", Type.F32, 1, 256),
        ("model.norm", Type.F32, 1, 256),
    ]:
        if kind in SCALES:
            data = random_blocks(random, kind, rows, width)
        else:
            data = quantize((random.random((rows, width)) + 0.5).astype(np.float32), kind)
        values = dequantize(data, kind).astype(np.float32).reshape(rows, width)
        if "q_proj" in key or "k_proj" in key:  # undoes interleave()
            values = values.reshape(rows // 32, 16, 2, width).swapaxes(1, 2)
        writer.add_tensor(gguf_name(f"{key}.weight", LLAMA), data[0] if "norm" in key else data, raw_dtype=kind)
        sums[f"{key}.weight"] = zlib.crc32(np.ascontiguousarray(values).tobytes())
    finish(writer)
    (FOLDER / "mixed.json").write_text(json.dumps(sums, indent=2) + "\n")


def pre_tokenizer(kind):
    """As in the tokenizer.json files of gpt2, HuggingFaceTB/SmolLM2-135M, Llama 3 and Qwen2."""
    if kind == "gpt-2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if kind == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    digits = {"llama-bpe": r"\p{N}{1,3}", "qwen2": r"\p{N}"}[kind]
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def tokens():
    """The ids of texts with the vocabulary of tiny-gpt2 and each pre-tokenizer, without special tokens around the text."""
    file = read(TESTDATA / "models" / "tiny-gpt2", "tokenizer.json")
    expected = {}
    for kind in ("gpt-2", "smollm", "llama-bpe", "qwen2"):
        merges = [tuple(merge) for merge in file["model"]["merges"]]
        tokenizer = Tokenizer(models.BPE(vocab=file["model"]["vocab"], merges=merges, ignore_merges=kind == "llama-bpe"))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer(kind), decoders.ByteLevel()
        if kind == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.add_special_tokens([token["content"] for token in file["added_tokens"]])
        expected[kind] = [{"text": text, "ids": tokenizer.encode(text).ids} for text in TEXTS]
    lines = ",\n".join(
        f"  {json.dumps(kind)}: [\n" + ",\n".join("    " + json.dumps(case) for case in cases) + "\n  ]" for kind, cases in expected.items()
    )
    (FOLDER / "tokens.json").write_text(f"{{\n{lines}\n}}\n")


def generate():
    FOLDER.mkdir(exist_ok=True)
    for name, changes in CHECKPOINTS.items():
        convert(name, changes)
    (FOLDER / "configs.json").write_text(json.dumps(CHECKPOINTS, indent=2) + "\n")
    block_types()
    mixed()
    tokens()


if __name__ == "__main__":
    generate()
