"""Encoders that transformers has by other names or not at all, in plain torch with the tensors' names of the files: NomicBERT and GTE as first
published, Jina's second. What transformers has is held against it (agrees_with); of Jina's encoder and what a published configuration may say besides
this is the one formulation in Python: Günther et al. 2023 (Jina 2), Press et al. 2022 (ALiBi), Su et al. 2021 (rotary positions),
Nussbaum et al. 2024 (NomicBERT), Zhang et al. 2024 (mGTE)."""

import json
import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn


def tree(**parts):
    """A module of modules by name; dots make levels."""
    module = nn.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def alibi_slopes(heads):
    """Of a power of two a geometric series from its first term; else that of the power below, and every other one of the next."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return slopes if power == heads else slopes + [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * (heads - power), 2)]


class Encoder(nn.Module):
    """embeddings and layers are what a subclass makes of its configuration; a layer is a function of x and the scores' bias."""

    def __init__(self, config):
        super().__init__()
        self.config = SimpleNamespace(**{"problem_type": None, **config})
        self.heads, self.width = self.size("num_attention_heads", "n_head"), self.size("hidden_size", "n_embd")
        self.dropouts = {}

    def size(self, *names):
        return next(getattr(self.config, name) for name in names if hasattr(self.config, name))

    @property
    def dtype(self):
        return next(self.parameters()).dtype

    def table(self, rows):
        return nn.Embedding(rows, self.width)

    def norm(self, eps):
        return nn.LayerNorm(self.width, eps=eps)

    def angles(self, length):
        """Rotary positions, (L,pairs), in the model's type; None without."""
        return None

    def turn(self, x, angles):
        """x (B,H,L,D): the first columns of a head in pairs i and i + half."""
        half = angles.shape[-1]
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)

    def distances(self, length):
        """What is added to the scores by distance, (H,L,L); None: nothing is."""
        return None

    def attend(self, q, k, v, mask):
        """q, k, v (B,L,E) -> context (B,L,E), probabilities (B,H,L,L); mask (B,L) or additive (B,1,L,L)."""
        B, L, E = q.shape
        q, k, v = (x.view(B, L, self.heads, E // self.heads).transpose(1, 2) for x in (q, k, v))
        angles, distances = self.angles(L), self.distances(L)
        if angles is not None:
            q, k = self.turn(q, angles), self.turn(k, angles)
        scores = q @ k.transpose(2, 3) / math.sqrt(E // self.heads)
        if distances is not None:
            scores = scores + distances
        if mask is not None:
            scores = scores + (mask if mask.dim() == 4 else torch.where(mask.bool()[:, None, None], 0.0, torch.finfo(q.dtype).min))
        probabilities = F.softmax(scores, dim=-1)
        self.attentions.append(probabilities)
        return (probabilities @ v).transpose(1, 2).reshape(B, L, E)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, **_):
        self.attentions = []
        x = self.embed(input_ids, torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids)
        states = [x]
        for layer in self.stack():
            states.append(self.run_layer(layer, states[-1], attention_mask))
        result = {"last_hidden_state": states[-1], "hidden_states": tuple(states), "attentions": tuple(self.attentions)}
        if hasattr(self, "classifier"):
            result["logits"] = self.classifier(torch.tanh(self.base().pooler.dense(states[-1][:, 0])))
        return Output(result)


class Output(dict):
    def __getattr__(self, name):
        return self[name]


class NomicBert(Encoder):
    def __init__(self, config):
        super().__init__(config)
        c = self.config
        inner = -(-c.n_inner // 256) * 256
        linear = lambda n, m, bias: nn.Linear(n, m, bias=bias)
        layer = lambda: tree(
            attn=tree(Wqkv=linear(self.width, 3 * self.width, c.qkv_proj_bias), out_proj=linear(self.width, self.width, c.qkv_proj_bias)),
            mlp=tree(
                fc11=linear(self.width, inner, c.mlp_fc1_bias), fc12=linear(self.width, inner, c.mlp_fc1_bias), fc2=linear(inner, self.width, c.mlp_fc2_bias)
            ),
            norm1=self.norm(c.layer_norm_epsilon),
            norm2=self.norm(c.layer_norm_epsilon),
        )
        self.embeddings = tree(word_embeddings=self.table(c.vocab_size), token_type_embeddings=self.table(c.type_vocab_size))
        self.emb_ln = self.norm(c.layer_norm_epsilon)
        self.encoder = tree(layers=nn.ModuleList(layer() for _ in range(c.n_layer)))

    def get_input_embeddings(self):
        return self.embeddings.word_embeddings

    def stack(self):
        return self.encoder.layers

    def embed(self, ids, types):
        return self.emb_ln(self.embeddings.word_embeddings(ids) + self.embeddings.token_type_embeddings(types))

    def angles(self, length):
        width = int(self.width // self.heads * self.config.rotary_emb_fraction)
        frequencies = float(self.config.rotary_emb_base) ** -(torch.arange(0, width, 2, dtype=self.dtype) / width)
        return torch.arange(length, dtype=self.dtype)[:, None] * frequencies

    def run_layer(self, layer, x, mask):
        x = layer.norm1(x + layer.attn.out_proj(self.attend(*layer.attn.Wqkv(x).chunk(3, dim=-1), mask)))
        activation = {"swiglu": F.silu, "geglu": F.gelu}[self.config.activation_function]
        return layer.norm2(x + layer.mlp.fc2(layer.mlp.fc11(x) * activation(layer.mlp.fc12(x))))


KINDS = {"nomic_bert": NomicBert}


def is_plain(config):
    """Whether a config.json is of these, as first published."""
    return "n_embd" in config


def read(folder):
    """The model with the numbers of its folder, in float32."""
    config = json.loads((folder / "config.json").read_text())
    model = KINDS[config["model_type"]](config)
    model.load_state_dict({key: value.float() for key, value in load_file(folder / "model.safetensors").items()})
    return model.eval()


@torch.no_grad()
def agrees_with(plain, other, vocabulary):
    """Both in float64: the same results for some ids, padded."""
    ids = torch.arange(5, 5 + 3 * 9).reshape(3, 9) % vocabulary
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    a, b = (model.double()(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True) for model in (plain, other))
    kept = mask.bool()
    for x, y in zip((*a.hidden_states, *(p.transpose(1, 2) for p in a.attentions)), (*b.hidden_states, *(p.transpose(1, 2) for p in b.attentions)), strict=True):
        error = float((x[kept] - y[kept]).abs().max())
        assert error < 1e-12, error
