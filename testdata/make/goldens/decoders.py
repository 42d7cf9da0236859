"""testdata/models: for every family of decoders a small checkpoint with random weights, written by transformers, and its golden numbers."""

import json
import shutil
from contextlib import contextmanager
from unittest import mock

import tokenizers
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import common
import tiny_tokenizers
from models import FOLDER, LONG, TEXTS, real

TEXTS = [text or "The" for text in TEXTS]  # a tokenizer without special tokens gives an empty text no token
END = "<|endoftext|>"


def tokenizer(start=None):
    """Byte-level BPE as GPT-2's; with `start` a token at the start of every text, as Llama's."""
    special = (END, *((start,) if start else ()))
    vocab, pairs = tiny_tokenizers.byte_level(special, count=60)
    bpe = Tokenizer(models.BPE(vocab, pairs))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.post_processor = processors.ByteLevel(trim_offsets=False)
    if start:
        bpe.post_processor = processors.TemplateProcessing(single=f"{start} $A", pair=f"{start} $A {start}:1 $B:1", special_tokens=[(start, vocab[start])])
    bpe.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=start or END, eos_token=END, model_max_length=64, model_input_names=["input_ids", "attention_mask"]
    )


def draw(name, key, shape):
    """Draws values with which every parameter matters."""
    values = common.Draw(f"{name}/{key}").normal(*shape)
    if any(part in key for part in ("norm", "ln_")) and key.endswith("weight"):
        return (0 if "gemma" in name else 1) + 0.25 * values  # Gemma adds 1
    if key.endswith("bias"):
        return 0.2 * values
    if any(part in key for part in ("wte", "wpe", "embed_tokens", "embed_in")):
        return (0.2 if "wpe" in key else 0.5) * values
    rows = shape[0] if any(part in key for part in ("c_attn", "c_proj", "c_fc")) else shape[-1]
    return 1.2 * rows**-0.5 * values


def checkpoints():
    """name, model, tokenizer, dtype of the weights, a change of config.json to the form of older versions or None"""
    t, f32, f16, bf16 = transformers, torch.float32, torch.float16, torch.bfloat16
    plain, started = tokenizer(), tokenizer("<s>")
    ids = lambda tokenizer: {"vocab_size": len(tokenizer), "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    gpt2 = {"n_embd": 24, "n_head": 4, "n_layer": 2, "n_positions": 64, **ids(plain)}
    yield "tiny-gpt2", t.GPT2LMHeadModel(t.GPT2Config(**gpt2)), plain, f32, gpt2_2019
    sizes = {"hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 40, "max_position_embeddings": 64}
    llama = {**sizes, **ids(started), "num_key_value_heads": 2}
    config = t.LlamaConfig(**llama, rope_parameters={"rope_type": "default", "rope_theta": 500.0}, attention_bias=True, mlp_bias=True)
    yield "tiny-llama", t.LlamaForCausalLM(config), started, f32, None
    rope = {"rope_type": "llama3", "rope_theta": 30.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0}  # each kind of frequency
    rope["original_max_position_embeddings"] = 24
    config = t.LlamaConfig(**{**llama, "num_key_value_heads": 1, "head_dim": 8}, rope_parameters=rope, tie_word_embeddings=True)
    yield "tiny-llama-3", t.LlamaForCausalLM(config), started, bf16, llama_2024
    config = t.MistralConfig(**llama, sliding_window=6, head_dim=4, rope_parameters={"rope_type": "linear", "rope_theta": 800.0, "factor": 2.0})
    yield "tiny-mistral", t.MistralForCausalLM(config), started, f16, None
    kinds = ["full_attention", "sliding_attention"]
    config = t.Qwen2Config(**{**sizes, **ids(plain)}, num_key_value_heads=2, use_sliding_window=True, sliding_window=5, layer_types=kinds, tie_word_embeddings=True)
    yield "tiny-qwen2", t.Qwen2ForCausalLM(config), plain, f16, None
    config = t.Qwen3Config(**{**sizes, **ids(plain)}, num_key_value_heads=2, head_dim=8, attention_bias=True, tie_word_embeddings=True)
    yield "tiny-qwen3", t.Qwen3ForCausalLM(config), plain, bf16, None
    config = t.GPTNeoXConfig(**{**sizes, **ids(plain)}, rotary_pct=0.7, rotary_emb_base=600)
    yield "tiny-neox", t.GPTNeoXForCausalLM(config), plain, f16, gpt_neox_2023
    config = t.GPTNeoXConfig(**{**sizes, **ids(plain)}, rotary_pct=1.0, use_parallel_residual=False, tie_word_embeddings=True, attention_bias=False)
    yield "tiny-neox-serial", t.GPTNeoXForCausalLM(config), plain, bf16, None
    rope = {"rope_type": "yarn", "rope_theta": 40.0, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 3.0}
    config = t.LlamaConfig(**{**sizes, **ids(plain)}, head_dim=12, num_key_value_heads=2, rope_parameters=rope, tie_word_embeddings=True)
    yield "tiny-llama-yarn", t.LlamaForCausalLM(config), plain, bf16, None
    gemma = {**sizes, **ids(plain), "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 5, "pad_token_id": None}
    config = t.Gemma2Config(**gemma, query_pre_attn_scalar=5, attn_logit_softcapping=2.0, final_logit_softcapping=3.0)
    yield "tiny-gemma-2", t.Gemma2ForCausalLM(config), plain, bf16, None
    rope = {"sliding_attention": {"rope_type": "default", "rope_theta": 30.0}, "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 400.0}}
    config = t.Gemma3TextConfig(**gemma, query_pre_attn_scalar=7, sliding_window_pattern=2, rope_parameters=rope)
    yield "tiny-gemma-3", t.Gemma3ForCausalLM(config), plain, bf16, gemma_2025


def gpt2_2019(config):
    """The form of openai-community/gpt2: defaults are missing."""
    kept = ("model_type", "n_embd", "n_head", "n_layer", "n_positions", "vocab_size", "bos_token_id", "eos_token_id", "layer_norm_epsilon", "activation_function")
    return {"architectures": ["GPT2LMHeadModel"], "n_ctx": config["n_positions"], **{key: config[key] for key in kept}}


def gpt_neox_2023(config):
    """The form of EleutherAI/pythia-70m: rotary_pct and rotary_emb_base instead of rope_parameters."""
    rope, dtype = config.pop("rope_parameters"), config.pop("dtype")
    return {**config, "rotary_pct": rope["partial_rotary_factor"], "rotary_emb_base": rope["rope_theta"], "torch_dtype": dtype}


def gemma_2025(config):
    """The form of google/gemma-3-1b-it: without layer_types, and with a RoPE base for each kind of layer."""
    rope, dtype = config.pop("rope_parameters"), config.pop("dtype")
    full, sliding = rope["full_attention"], rope["sliding_attention"]
    del config["layer_types"]
    named = {"rope_theta": full.pop("rope_theta"), "rope_local_base_freq": sliding["rope_theta"], "rope_scaling": full, "sliding_window_pattern": 2}
    return {**config, **named, "torch_dtype": dtype}


def llama_2024(config):
    """The form of meta-llama/Llama-3.2-1B: rope_scaling and rope_theta instead of rope_parameters."""
    rope = config.pop("rope_parameters")
    theta = rope.pop("rope_theta")
    return {**config, "rope_scaling": rope, "rope_theta": theta, "torch_dtype": config.pop("dtype"), "transformers_version": "4.45.0.dev0"}


def save(name, model, tokenizer, dtype, change):
    model.load_state_dict({key: draw(name, key, tuple(value.shape)) for key, value in model.state_dict().items()})
    model.tie_weights()
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if change:
        path = folder / "config.json"
        path.write_text(json.dumps(change(json.loads(path.read_text())), indent=2, sort_keys=True) + "\n")
    return folder


def load(folder, dtype, **changes):
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(folder).architectures[0])
    model, report = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True, **changes)
    assert not report["missing_keys"] and not report["mismatched_keys"], (folder.name, report)
    return model.to(dtype).eval()


def encode(folder, texts, max_length):
    """input_ids, attention_mask, token_type_ids (B,L) and the tokens. Padding has id 0, because there is no padding token."""
    backend = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
    backend.enable_truncation(max_length)
    backend.enable_padding(pad_id=0, pad_token="[PAD]")
    encoded = backend.encode_batch(texts)
    ids = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return {name: torch.tensor([getattr(e, part) for e in encoded]) for name, part in ids.items()}, [e.tokens for e in encoded]


@contextmanager
def in_float64():
    """Makes code that computes in float32 whatever the dtype of the model (norms, softmax, rotary positions) compute in float64."""
    with mock.patch.object(torch, "float32", torch.float64), mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        yield


def run(model, inputs):
    mask = inputs["attention_mask"]
    out = model(input_ids=inputs["input_ids"], attention_mask=mask, output_attentions=True, output_hidden_states=True, use_cache=False)
    results = {"lastHiddenState": out.hidden_states[-1]}
    results |= {f"hiddenStates.{i}": x for i, x in enumerate(out.hidden_states[:-1])}
    results |= {f"attentions.{i}": x for i, x in enumerate(out.attentions)}
    return results | {"logits": out.logits}


def write_numbers(name, folder, cases):
    golden = common.GoldenFile(checkpoint=name, transformers=transformers.__version__, tokenizers=tokenizers.__version__, max_length="64")
    single, double = load(folder, torch.float32), load(folder, torch.float64)
    for case, (texts, options) in cases.items():
        inputs, tokens = encode(folder, texts, options.get("maxLength", 64))
        described = {"name": case, "op": "text_model", "options": options, "texts": texts, "tokens": tokens, "inputs": list(inputs), "expected": {}}
        golden.cases.append(described)
        for key, value in inputs.items():
            golden.add(f"{case}/{key}", value)
        values32 = run(single, inputs)
        with in_float64():
            values64 = run(double, inputs)
        for key, value in values64.items():
            assert value.dtype == torch.float64
            error = common.max_error(real(values32[key], key, inputs["attention_mask"]), real(value, key, inputs["attention_mask"]))
            assert error < 1e-4, (name, case, key, error)
            golden.add(f"{case}/expected.{key}", value)
            described["expected"][key] = error
    golden.write(FOLDER / f"{name}.safetensors", limit=500_000)


# ---------------------------------------------------------------- generated texts, scores, sampling


def prompts():
    """Beginnings of the lines that the tokenizers were trained on."""
    for line in tiny_tokenizers.LINES:
        words = line.split()
        for count in (1, 2, 3):
            if count <= len(words):
                yield " ".join(words[:count])


def generated(model, tokenizer, text, new=12, **options):
    """The greedy continuation in float64, ended before a choice that rounding could change."""
    ids = tokenizer(text, return_tensors="pt").input_ids
    with in_float64():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, pad_token_id=0, output_scores=True,
                             return_dict_in_generate=True, **options)
    tokens = out.sequences[0, ids.shape[1] :].tolist()
    for step, scores in enumerate(out.scores):
        first, second = scores[0].topk(2).values.tolist()
        if first - second < 1e-3:
            return tokens[:step]
    return tokens


def scores_of(model, ids):
    """ln p of each token but the first, its rank, and the entropy before it."""
    with in_float64(), torch.no_grad():
        all_logits = model(torch.tensor([ids]), use_cache=False).logits[0, :-1].log_softmax(-1)
    rows = []
    for log_p, token in zip(all_logits, ids[1:], strict=True):
        rank = 1 + int((log_p > log_p[token]).sum())
        rows.append([round(float(log_p[token]), 7), rank, round(float(-(log_p.exp() * log_p).sum()), 7)])
    return rows


def generation_cases():
    cases = []
    for name, *_ in checkpoints():
        folder = FOLDER / name
        model, tokenizer = load(folder, torch.float64), transformers.AutoTokenizer.from_pretrained(folder)
        texts = sorted(set(prompts()))[hash_of(name) :: 2][:44]
        for i, text in enumerate(texts):
            options = {"repetitionPenalty": 1.4} if i % 4 == 3 else {}
            ids = generated(model, tokenizer, text, **({"repetition_penalty": 1.4} if options else {}))
            case = {"model": name, "text": text, "options": options, "ids": ids}
            if i % 8 == 0:
                given = tokenizer(text).input_ids
                with in_float64(), torch.no_grad():
                    logits = model(torch.tensor([given]), use_cache=False).logits[0, -1]
                top = logits.topk(4)
                case["next"] = [[int(t), round(float(v), 6), round(float(logits.softmax(-1)[t]), 8)] for v, t in zip(top.values, top.indices)][:3]
                if len(given) > 1:
                    case["scores"] = scores_of(model, given)
            cases.append(case)
    return cases


def hash_of(name):
    return sum(map(ord, name)) % 2


def sampling_cases():
    """Logits, tokens before, options of generate(), and the probabilities after transformers' processors."""
    p = transformers.generation.logits_process
    cases = []
    for i, (options, ties) in enumerate(
        [
            ({}, False), ({"temperature": 0.7}, False), ({"temperature": 2.5, "topK": 5}, False), ({"topK": 3}, True), ({"topP": 0.6}, False),
            ({"topP": 0.05}, False), ({"minP": 0.1}, False), ({"repetitionPenalty": 1.7}, False), ({"repetitionPenalty": 0.5, "topK": 8}, False),
            ({"temperature": 1.3, "topK": 12, "topP": 0.9, "minP": 0.05, "repetitionPenalty": 1.2}, False),
        ]
    ):
        logits = (3 * common.Draw(f"sampling/{i}").normal(1, 24)).float()
        if ties:
            logits[0, [4, 9, 11]] = float(logits.max())
            logits[0, [5, 6]] = float(logits.max()) - 0.5
        before = [3, 7, 3, 20]
        made = []
        if "repetitionPenalty" in options:
            made.append(p.RepetitionPenaltyLogitsProcessor(options["repetitionPenalty"]))
        for name, kind in (("temperature", "Temperature"), ("topK", "TopK"), ("topP", "TopP"), ("minP", "MinP")):
            if name in options:
                made.append(getattr(p, f"{kind}LogitsWarper")(options[name]))
        scores = transformers.LogitsProcessorList(made)(torch.tensor([before]), logits.double())
        probabilities = scores.softmax(-1)[0].tolist()
        cases.append({"options": options, "before": before, "logits": logits[0].tolist(), "probabilities": [round(x, 12) for x in probabilities]})
    return cases


def rope_cases():
    """RoPE parameters, and the frequencies and the factor of cosines and sines that transformers computes from them."""
    t, cases = transformers, []
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 512}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 5e5}
    for rope in (
        {"rope_type": "default", "rope_theta": 10000.0},
        {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
        {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0},
        {**llama3, "original_max_position_embeddings": 1024},
        yarn,
        {**yarn, "truncate": False, "beta_fast": 20, "beta_slow": 2},
        {**yarn, "attention_factor": 0.75, "rope_theta": 1e6},
        {**yarn, "mscale": 0.7, "mscale_all_dim": 1.3, "factor": 40.0},
        {**yarn, "factor": 0.5},
        {**yarn, "original_max_position_embeddings": 8, "beta_fast": 1e-6, "beta_slow": 1e-7},
    ):
        for head_dim in (64, 10):
            config = t.LlamaConfig(hidden_size=64, num_attention_heads=4, head_dim=head_dim, max_position_embeddings=2048, rope_parameters=dict(rope))
            made = t.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
            made(torch.zeros(1, 2048, 1), torch.arange(2048)[None])  # dynamic ones would change for a longer text
            frequencies = [float(f"{x:.9g}") for x in made.inv_freq.tolist()]
            cases.append({"rope": rope, "head_dim": head_dim, "positions": 2048, "frequencies": frequencies, "magnitude": float(made.attention_scaling)})
    return cases


def write_lines(name, cases):
    path = common.TESTDATA / "tasks" / name
    path.write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases) + "\n]\n")
    print(f"{path.relative_to(common.ROOT)}: {len(cases)} cases, {path.stat().st_size} bytes")

def generate():
    for name, model, tokenizer, dtype, change in checkpoints():
        folder = save(name, model, tokenizer, dtype, change)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= 200_000, (name, size)
        print(f"{folder.relative_to(common.ROOT)}: {size} bytes")
        write_numbers(name, folder, {"texts": (TEXTS[:4], {}), "long": (LONG, {"maxLength": 28})})
    write_lines("generated.json", generation_cases())
    write_lines("sampling.json", sampling_cases())
    write_lines("rope.json", rope_cases())


if __name__ == "__main__":
    generate()
