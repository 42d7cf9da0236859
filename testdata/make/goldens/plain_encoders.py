"""Encoders in plain torch that transformers has with other names or not at all, with the tensor names of the files: NomicBERT and GTE in their first
published form, and Jina embeddings v2. They are compared with transformers as far as it has them (agrees_with). For Jina's encoder and for other
options of published configurations this is the only implementation in Python: Günther et al. 2023 (Jina 2), Press et al. 2022 (ALiBi),
Su et al. 2021 (rotary positions), Nussbaum et al. 2024 (NomicBERT), Zhang et al. 2024 (mGTE)."""

import json
import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn


def tree(**parts):
    """A module of modules by name; dots separate levels."""
    module = nn.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def alibi_slopes(heads):
    """If heads is a power of two, a geometric series. Otherwise that of the power below, followed by every other slope of the next power."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return slopes if power == heads else slopes + [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * (heads - power), 2)]


class Encoder(nn.Module):
    """Base class. Subclasses define parts(), which creates the modules for a configuration, and a layer. With labels there is BERT's head, and the
    parts have a prefix."""

    base_model_prefix = ""

    def __init__(self, config):
        super().__init__()
        self.config = c = SimpleNamespace(**{"problem_type": None, **config})
        self.width, self.heads = (c.n_embd, c.n_head) if hasattr(c, "n_embd") else (c.hidden_size, c.num_attention_heads)
        parts = self.parts(c)
        if hasattr(c, "id2label"):
            setattr(self, self.prefix, tree(**parts, pooler=tree(dense=nn.Linear(self.width, self.width))))
            self.classifier = nn.Linear(self.width, len(c.id2label))
        else:
            for name, part in parts.items():
                setattr(self, name, part)

    @property
    def base(self):
        return getattr(self, self.prefix, self)

    @property
    def dtype(self):
        return next(self.parameters()).dtype

    def get_input_embeddings(self):
        return self.base.embeddings.word_embeddings

    def tables(self, words, types, **more):
        return tree(word_embeddings=nn.Embedding(words, self.width, padding_idx=self.config.pad_token_id), **({"token_type_embeddings": nn.Embedding(types, self.width)} if types else {}), **more)

    def embed(self, ids, types):
        """The sum of the embedding tables."""
        tables = self.base.embeddings
        return tables.word_embeddings(ids) + (tables.token_type_embeddings(types) if hasattr(tables, "token_type_embeddings") else 0)

    def angles(self, length):
        """Rotary angles (L,pairs) in the dtype of the model, or None."""
        return None

    def series(self, length, theta, width, factor=1.0):
        frequencies = theta ** -(torch.arange(0, width, 2, dtype=self.dtype) / width) / factor
        return torch.arange(length, dtype=self.dtype)[:, None] * frequencies

    def turn(self, x, angles):
        """Rotates the first columns of each head of x (B,H,L,D), in pairs i and i + half."""
        half = angles.shape[-1]
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)

    def distances(self, length):
        """The bias (H,L,L) by distance that is added to the scores, or None."""
        return None

    def attend(self, q, k, v, mask):
        """q, k, v (B,L,E) -> context (B,L,E); mask (B,L)."""
        B, L, E = q.shape
        q, k, v = (x.reshape(B, L, self.heads, E // self.heads).transpose(1, 2) for x in (q, k, v))
        angles, distances = self.angles(L), self.distances(L)
        if angles is not None:
            q, k = self.turn(q, angles), self.turn(k, angles)
        scores = q @ k.transpose(2, 3) / math.sqrt(E // self.heads)
        if distances is not None:
            scores = scores + distances
        scores = scores.masked_fill(~mask.bool()[:, None, None], torch.finfo(q.dtype).min)
        probabilities = F.softmax(scores, dim=-1)
        self.attentions.append(probabilities)
        return (probabilities @ v).transpose(1, 2).reshape(B, L, E)

    def forward(self, input_ids, attention_mask, token_type_ids=None, **_):
        self.attentions = []
        states = [self.embed(input_ids, torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids)]
        for layer in self.layers():
            states.append(self.run_layer(layer, states[-1], attention_mask))
        result = Output(last_hidden_state=states[-1], hidden_states=tuple(states), attentions=tuple(self.attentions))
        if hasattr(self, "classifier"):
            result["logits"] = self.classifier(torch.tanh(self.base.pooler.dense(states[-1][:, 0])))
        return result


class Output(dict):
    def __getattr__(self, name):
        return self[name]


class NomicBert(Encoder):
    prefix = "bert"

    def parts(self, c):
        E, inner = self.width, -(-c.n_inner // 256) * 256
        linear, norm = (lambda n, m, bias: nn.Linear(n, m, bias=bias)), lambda: nn.LayerNorm(E, eps=c.layer_norm_epsilon)
        layer = lambda: tree(
            attn=tree(Wqkv=linear(E, 3 * E, c.qkv_proj_bias), out_proj=linear(E, E, c.qkv_proj_bias)),
            mlp=tree(fc11=linear(E, inner, c.mlp_fc1_bias), fc12=linear(E, inner, c.mlp_fc1_bias), fc2=linear(inner, E, c.mlp_fc2_bias)),
            norm1=norm(),
            norm2=norm(),
        )
        tables, layers = self.tables(c.vocab_size, c.type_vocab_size), nn.ModuleList(layer() for _ in range(c.n_layer))
        return {"embeddings": tables, "emb_ln": norm(), "encoder": tree(layers=layers)}

    def embed(self, ids, types):
        return self.base.emb_ln(super().embed(ids, types))

    def layers(self):
        return self.base.encoder.layers

    def angles(self, length):
        return self.series(length, float(self.config.rotary_emb_base), int(self.width // self.heads * self.config.rotary_emb_fraction))

    def run_layer(self, layer, x, mask):
        x = layer.norm1(x + layer.attn.out_proj(self.attend(*layer.attn.Wqkv(x).chunk(3, dim=-1), mask)))
        activation = {"swiglu": F.silu, "geglu": F.gelu}[self.config.activation_function]
        return layer.norm2(x + layer.mlp.fc2(layer.mlp.fc11(x) * activation(layer.mlp.fc12(x))))


class JinaBert(Encoder):
    prefix = "bert"

    def parts(self, c):
        E, inner = self.width, c.intermediate_size
        linear, norm = lambda n, m: nn.Linear(n, m), lambda: nn.LayerNorm(E, eps=c.layer_norm_eps)
        layer = lambda: tree(
            attention=tree(
                self=tree(query=linear(E, E), key=linear(E, E), value=linear(E, E)),
                output=tree(dense=linear(E, E), LayerNorm=norm()),
            ),
            mlp=tree(gated_layers=nn.Linear(E, 2 * inner, bias=False), wo=linear(inner, E), layernorm=norm()),
        )
        tables = self.tables(c.vocab_size, c.type_vocab_size, LayerNorm=norm())
        return {"embeddings": tables, "encoder": tree(layer=nn.ModuleList(layer() for _ in range(c.num_hidden_layers)))}

    def embed(self, ids, types):
        return self.base.embeddings.LayerNorm(super().embed(ids, types))

    def layers(self):
        return self.base.encoder.layer

    def distances(self, length):
        places = torch.arange(length, dtype=self.dtype)
        slopes = torch.tensor(alibi_slopes(self.heads), dtype=self.dtype)
        return -slopes[:, None, None] * (places[:, None] - places).abs()

    def run_layer(self, layer, x, mask):
        own = getattr(layer.attention, "self")
        context = self.attend(own.query(x), own.key(x), own.value(x), mask)
        x = layer.attention.output.LayerNorm(x + layer.attention.output.dense(context))
        gate, up = layer.mlp.gated_layers(x).chunk(2, dim=-1)
        activation = {"geglu": F.gelu, "reglu": F.relu}[self.config.feed_forward_type]
        return layer.mlp.layernorm(x + layer.mlp.wo(activation(gate) * up))


class New(Encoder):
    prefix = "new"

    def parts(self, c):
        E, inner = self.width, c.intermediate_size
        linear, norm = lambda n, m: nn.Linear(n, m), lambda: nn.LayerNorm(E, eps=c.layer_norm_eps)
        layer = lambda: tree(
            attention=tree(qkv_proj=linear(E, 3 * E), o_proj=linear(E, E)),
            mlp=tree(up_gate_proj=nn.Linear(E, 2 * inner, bias=False), down_proj=linear(inner, E)),
            attn_ln=norm(),
            mlp_ln=norm(),
        )
        tables = self.tables(c.vocab_size, c.type_vocab_size, LayerNorm=norm())
        return {"embeddings": tables, "encoder": tree(layer=nn.ModuleList(layer() for _ in range(c.num_hidden_layers)))}

    def embed(self, ids, types):
        return self.base.embeddings.LayerNorm(super().embed(ids, types))

    def layers(self):
        return self.base.encoder.layer

    def angles(self, length):
        scaling, width = self.config.rope_scaling, self.width // self.heads
        factor = scaling["factor"] if scaling else 1.0
        return self.series(length, self.config.rope_theta * factor, width, factor ** (2 / width))

    def run_layer(self, layer, x, mask):
        x = layer.attn_ln(x + layer.attention.o_proj(self.attend(*layer.attention.qkv_proj(x).chunk(3, dim=-1), mask)))
        up, gate = layer.mlp.up_gate_proj(x).chunk(2, dim=-1)
        return layer.mlp_ln(x + layer.mlp.down_proj(F.gelu(gate) * up))


KINDS = {"nomic_bert": NomicBert, "bert": JinaBert, "new": New}


def is_plain(config):
    """Whether a config.json belongs to one of these encoders in its first published form."""
    return "n_embd" in config or config["model_type"] == "new" or config.get("position_embedding_type") == "alibi"


def read(folder):
    """Loads the model with the weights in its folder, in float32."""
    config = json.loads((folder / "config.json").read_text())
    model = KINDS[config["model_type"]](config)
    model.load_state_dict({key: value.float() for key, value in load_file(folder / "model.safetensors").items()})
    return model.eval()


@torch.no_grad()
def agrees_with(plain, other, vocabulary):
    """Checks that both models give the same results in float64 for some padded ids."""
    ids = torch.arange(5, 5 + 3 * 9).reshape(3, 9) % vocabulary
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    a, b = (model.double()(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True) for model in (plain, other))
    kept = mask.bool()
    for x, y in zip((*a.hidden_states, *(p.transpose(1, 2) for p in a.attentions)), (*b.hidden_states, *(p.transpose(1, 2) for p in b.attentions)), strict=True):
        error = float((x[kept] - y[kept]).abs().max())
        assert error < 1e-12, error
