"""Writes the models of cases.json to build/bench/models/:

  NAME.safetensors   weights by torch.nn.TransformerEncoder's names, for attn and PyTorch; encoders only
  NAME.onnx          standard operators, as an exporter leaves them, for onnxruntime-node and onnxruntime-web
  NAME.fused.onnx    onnxruntime's own fused operators, as its transformer optimizer would leave them

NAME is minilm or bert-base, x (B,S,E) -> y (B,S,E), post-norm, gelu by erf, weights drawn from fixed seeds; mha-E-H, one multi-head
attention of the same shapes, with pytorch.py's weights; or sdpa-H-D, q, k, v (B,H,S,D) -> y (B,H,S,D). B and S are of any size.
Every graph is compared with PyTorch before it gets its name.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file

sys.dont_write_bytecode = True  # nothing but models is left behind
import pytorch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench" / "models"
CASES = ROOT / "benchmarks" / "cases.json"
SOURCES = (pathlib.Path(__file__), pathlib.Path(pytorch.__file__), pathlib.Path(__file__).with_name("requirements.txt"), CASES)
EPSILON = 1e-5
TOLERANCE = 1e-4


def encoder(layers, E, H, F, seed):
    """torch's encoder with new weights in every layer (its constructor copies the first); layer norms are 1 and 0 as after torch's constructor."""
    layer = torch.nn.TransformerEncoderLayer(E, H, F, dropout=0.0, activation="gelu", layer_norm_eps=EPSILON, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            torch.nn.init.xavier_uniform_(parameter, generator=generator)
        elif "norm" not in name:
            torch.nn.init.normal_(parameter, std=0.02, generator=generator)
    return model


class Graph:
    """Nodes and constants in the order in which they are added."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, values):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def node(self, op, *inputs, domain="", **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))
        return output

    def fused(self, op, *inputs, **attributes):
        return self.node(op, *inputs, domain="com.microsoft", **attributes)

    def model(self, inputs, dims):
        """A model whose last node gives y, of the inputs' shape."""
        self.nodes[-1].output[0] = "y"
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        graph = helper.make_graph(self.nodes, "model", [value(name) for name in inputs], [value("y")], list(self.constants.values()))
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


class Plain(Graph):
    """Standard operators only: onnxruntime finds Gelu, BiasGelu and SkipLayerNormalization in them by itself."""

    def __init__(self, state, E, H):
        super().__init__()
        self.state, self.E, self.H = state, E, H

    def scalar(self, value):
        return self.constant(f"scalar {value}", np.float32(value))

    def linear(self, x, name, weight=None, bias=None):
        weight = self.state[name + ".weight"] if weight is None else weight
        bias = self.state[name + ".bias"] if bias is None else bias
        return self.node("Add", self.node("MatMul", x, self.constant(name + ".weight", weight.T)), self.constant(name + ".bias", bias))

    def attention(self, x, at):
        D = self.E // self.H
        heads, merged = self.constant("heads", np.array([0, 0, self.H, D])), self.constant("merged", np.array([0, 0, self.E]))
        parts = zip("qkv", *(np.split(self.state[f"{at}in_proj_{part}"], 3) for part in ("weight", "bias")))
        q, k, v = (self.node("Reshape", self.linear(x, at + name, weight, bias), heads) for name, weight, bias in parts)
        q, k, v = (self.node("Transpose", part, perm=perm) for part, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
        probabilities = self.node("Softmax", self.node("Div", self.node("MatMul", q, k), self.scalar(D**0.5)), axis=-1)
        context = self.node("Transpose", self.node("MatMul", probabilities, v), perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", context, merged), at + "out_proj")

    def norm(self, x, name):
        weight, bias = (self.constant(f"{name}.{part}", self.state[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=EPSILON)

    def layer(self, x, at):
        x = self.norm(self.node("Add", self.attention(x, at + "self_attn."), x), at + "norm1")
        h = self.linear(x, at + "linear1")
        twice_phi = self.node("Add", self.node("Erf", self.node("Div", h, self.scalar(2**0.5))), self.scalar(1))
        h = self.node("Mul", self.node("Mul", h, twice_phi), self.scalar(0.5))
        return self.norm(self.node("Add", self.linear(h, at + "linear2"), x), at + "norm2")


class Fused(Graph):
    """One Attention with its three projections, then MatMul, SkipLayerNormalization and BiasGelu, which take the biases along."""

    def __init__(self, state, E, H):
        super().__init__()
        self.state, self.H = state, H

    def parameter(self, name):
        return self.constant(name, self.state[name].T)

    def context(self, x, at):
        x = self.fused("Attention", x, self.parameter(at + "in_proj_weight"), self.parameter(at + "in_proj_bias"), num_heads=self.H)
        return self.node("MatMul", x, self.parameter(at + "out_proj.weight"))

    def attention(self, x, at):
        return self.node("Add", self.context(x, at), self.parameter(at + "out_proj.bias"))

    def skip_norm(self, x, skip, norm, bias):
        parameters = (self.parameter(name) for name in (norm + ".weight", norm + ".bias", bias))
        return self.fused("SkipLayerNormalization", x, skip, *parameters, epsilon=EPSILON)

    def layer(self, x, at):
        x = self.skip_norm(self.context(x, at + "self_attn."), x, at + "norm1", at + "self_attn.out_proj.bias")
        h = self.node("MatMul", x, self.parameter(at + "linear1.weight"))
        h = self.fused("BiasGelu", h, self.parameter(at + "linear1.bias"))
        return self.skip_norm(self.node("MatMul", h, self.parameter(at + "linear2.weight")), x, at + "norm2", at + "linear2.bias")


FORMS = {".onnx": Plain, ".fused.onnx": Fused}


def encoder_graph(form, state, layers, E, H):
    graph, x = form(state, E, H), "x"
    for i in range(layers):
        x = graph.layer(x, f"layers.{i}.")
    return graph.model(["x"], ["B", "S", E])


def mha_graph(form, state, E, H):
    graph = form(state, E, H)
    graph.attention("x", "")
    return graph.model(["x"], ["B", "S", E])


def sdpa_graph(form, H, D):
    g = Graph()
    if form is Plain:
        scores = g.node("Div", g.node("MatMul", "q", g.node("Transpose", "k", perm=[0, 1, 3, 2])), g.constant("root_d", np.float32(D**0.5)))
        g.node("MatMul", g.node("Softmax", scores, axis=-1), "v")
    else:
        # It wants the heads of a row side by side, at least those of q; moving them is little beside S² D.
        merged = g.constant("merged", np.array([0, 0, H * D]))
        q, k, v = (g.node("Reshape", g.node("Transpose", name, perm=[0, 2, 1, 3]), merged) for name in "qkv")
        y = g.fused("MultiHeadAttention", q, k, v, num_heads=H)
        g.node("Transpose", g.node("Reshape", y, g.constant("heads", np.array([0, 0, H, D]))), perm=[0, 2, 1, 3])
    return g.model("qkv", ["B", H, "S", D])


def write(name, make, call, inputs):
    """Both graphs, make(form), each compared with PyTorch's call over two sizes, inputs(B, S)."""
    for ending, form in FORMS.items():
        unfinished = FOLDER / f"{name}.part"
        onnx.save(make(form), unfinished)
        session = onnxruntime.InferenceSession(unfinished, providers=["CPUExecutionProvider"])
        worst = 0.0
        for B, S in ((1, 5), (3, 40)):
            given = inputs(B, S)
            with torch.inference_mode():
                expected = call(*given.values())
            given = {key: value.numpy() for key, value in given.items()}
            worst = max(worst, float(np.abs(session.run(None, given)[0] - expected.numpy()).max()))
        if not worst < TOLERANCE:
            raise SystemExit(f"{name}{ending}: {worst:.2e} away from PyTorch")
        print(f"{name}{ending}: within {worst:.1e} of PyTorch")
        unfinished.rename(FOLDER / f"{name}{ending}")


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def main():
    table = json.loads(CASES.read_text())
    FOLDER.mkdir(parents=True, exist_ok=True)
    # What was written for the same sources stays.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()
    stamp = FOLDER / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for seed, (name, shape) in enumerate(table["models"].items(), start=1):
        model = encoder(**shape, seed=seed)
        state = {key: value.numpy() for key, value in model.state_dict().items()}
        layers, E, H = shape["layers"], shape["E"], shape["H"]
        write(name, lambda form: encoder_graph(form, state, layers, E, H), model, lambda B, S: {"x": random(B, S, E)})
        save_file(model.state_dict(), FOLDER / f"{name}.safetensors")
    for E, H in sorted({(case["E"], case["H"]) for case in table["cases"] if case["kind"] == "mha"}):
        layer = pytorch.mha_layer(E, H)
        state = {key: value.numpy() for key, value in layer.state_dict().items()}
        write(f"mha-{E}-{H}", lambda form: mha_graph(form, state, E, H), lambda x: layer(x, x, x)[0], lambda B, S: {"x": random(B, S, E)})
    for H, D in sorted({(case["H"], case["D"]) for case in table["cases"] if case["kind"] == "sdpa"}):
        write(f"sdpa-{H}-{D}", lambda form: sdpa_graph(form, H, D), torch.nn.functional.scaled_dot_product_attention,
              lambda B, S: {name: random(B, H, S, D) for name in "qkv"})
    stamp.write_text(digest)


if __name__ == "__main__":
    main()
