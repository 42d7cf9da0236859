"""Writes the models of cases.json to build/bench/models/:

  NAME.safetensors   weights by torch.nn.TransformerEncoder's names, for attn and PyTorch; encoders only
  NAME.onnx          standard operators, as an exporter leaves them, for onnxruntime-node and onnxruntime-web
  NAME.fused.onnx    onnxruntime's own fused operators, as its transformer optimizer would leave them
  NAME.int8.onnx, NAME.int8.fused.onnx   the two after quantize_dynamic with a scale for each column of a weight, in 7 bits

NAME is minilm or bert-base, x (B,S,E) -> y (B,S,E), post-norm, gelu by erf, weights drawn from fixed seeds; mha-E-H, one multi-head
attention of the same shapes, with pytorch.py's weights; or sdpa-H-D, q, k, v (B,H,S,D) -> y (B,H,S,D). B and S are of any size.
all-MiniLM-L6-v2 is the text model, with its published weights: ids, mask (B,S) -> y (B,E), pooled and of length 1; its files are fetched to
models/ where they are not yet. Every graph is compared with PyTorch before it gets its name.
"""

import hashlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.torch import load_file, save_file

sys.dont_write_bytecode = True  # writes no files except models
import pytorch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench" / "models"
CASES = ROOT / "benchmarks" / "cases.json"
FETCH = ROOT / "testdata" / "make" / "goldens" / "fetch_models.py"
CHECKPOINT = ROOT / "models" / "all-MiniLM-L6-v2"
SOURCES = (pathlib.Path(__file__), pathlib.Path(pytorch.__file__), pathlib.Path(__file__).with_name("requirements.txt"), CASES, FETCH)
EPSILON = 1e-5
TOLERANCE = 1e-4
INT8_COSINE = 0.98  # of int8 graphs with PyTorch's result


def encoder(layers, E, H, F, seed):
    """torch's encoder with separate weights per layer (its constructor copies the first); layer norms are 1 and 0 as after torch's constructor."""
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
    """Nodes and constants in the order of their addition."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, values):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(values, order="C"), name)
        return name

    def node(self, op, *inputs, domain="", **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))
        return output

    def fused(self, op, *inputs, **attributes):
        return self.node(op, *inputs, domain="com.microsoft", **attributes)

    def model(self, inputs, dims, kind=TensorProto.FLOAT, y_dims=None):
        """A model whose last node returns y, by default in the inputs' shape."""
        self.nodes[-1].output[0] = "y"
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, y_dims or dims)
        given = [helper.make_tensor_value_info(name, kind, dims) for name in inputs]
        graph = helper.make_graph(self.nodes, "model", given, [y], list(self.constants.values()))
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


class Plain(Graph):
    """Standard operators only: onnxruntime itself fuses Gelu, BiasGelu and SkipLayerNormalization."""

    def __init__(self, state, E, H, epsilon=EPSILON):
        super().__init__()
        self.state, self.E, self.H, self.epsilon, self.mask = state, E, H, epsilon, None

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
        scores = self.node("Div", self.node("MatMul", q, k), self.scalar(D**0.5))
        if self.mask:
            scores = self.node("Add", scores, self.mask)
        probabilities = self.node("Softmax", scores, axis=-1)
        context = self.node("Transpose", self.node("MatMul", probabilities, v), perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", context, merged), at + "out_proj")

    def norm(self, x, name):
        weight, bias = (self.constant(f"{name}.{part}", self.state[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=self.epsilon)

    def embed(self, ids, mask):
        """The embeddings of tokens of type 0, and the mask as numbers added to scores."""
        length = self.node("Gather", self.node("Shape", ids), self.constant("one", np.array(1)), axis=0)
        scalars = [self.constant(f"index {i}", np.array(i)) for i in (0, 1)]
        positions = self.node("Range", scalars[0], length, scalars[1])
        words = self.node("Gather", self.constant("words", self.state["words"]), ids)
        words = self.node("Add", words, self.constant("types", self.state["types"][0]))
        x = self.node("Add", words, self.node("Gather", self.constant("positions", self.state["positions"]), positions))
        flags = self.node("Unsqueeze", self.node("Cast", mask, to=TensorProto.FLOAT), self.constant("axes of scores", np.array([1, 2])))
        self.mask = self.node("Mul", self.node("Sub", self.scalar(1), flags), self.scalar(float(np.finfo(np.float32).min)))
        return self.norm(x, "norm")

    def layer(self, x, at):
        x = self.norm(self.node("Add", self.attention(x, at + "self_attn."), x), at + "norm1")
        h = self.linear(x, at + "linear1")
        twice_phi = self.node("Add", self.node("Erf", self.node("Div", h, self.scalar(2**0.5))), self.scalar(1))
        h = self.node("Mul", self.node("Mul", h, twice_phi), self.scalar(0.5))
        return self.norm(self.node("Add", self.linear(h, at + "linear2"), x), at + "norm2")


class Fused(Graph):
    """One Attention with its three projections, then MatMul, SkipLayerNormalization and BiasGelu with their biases."""

    def __init__(self, state, E, H, epsilon=EPSILON):
        super().__init__()
        self.state, self.H, self.epsilon, self.mask = state, H, epsilon, []

    def embed(self, ids, mask):
        """One EmbedLayerNormalization; Attention uses the mask directly."""
        self.mask = [mask]
        tables = [self.constant(name, self.state[name]) for name in ("words", "positions", "types")]
        zeros = self.node("Sub", ids, ids)
        x = self.fused("EmbedLayerNormalization", ids, zeros, *tables, self.parameter("norm.weight"), self.parameter("norm.bias"),
                       epsilon=self.epsilon)
        self.nodes[-1].output.append("lengths")
        return x

    def parameter(self, name):
        return self.constant(name, self.state[name].T)

    def context(self, x, at):
        weight, bias = self.parameter(at + "in_proj_weight"), self.parameter(at + "in_proj_bias")
        x = self.fused("Attention", x, weight, bias, *self.mask, num_heads=self.H)
        return self.node("MatMul", x, self.parameter(at + "out_proj.weight"))

    def attention(self, x, at):
        return self.node("Add", self.context(x, at), self.parameter(at + "out_proj.bias"))

    def skip_norm(self, x, skip, norm, bias):
        parameters = (self.parameter(name) for name in (norm + ".weight", norm + ".bias", bias))
        return self.fused("SkipLayerNormalization", x, skip, *parameters, epsilon=self.epsilon)

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


def text_graph(form, state, layers, E, H, epsilon):
    """With sentence-transformers' mean over unpadded tokens, normalised to length 1."""
    graph = form(state, E, H, epsilon)
    x = graph.embed("ids", "mask")
    for i in range(layers):
        x = graph.layer(x, f"layers.{i}.")
    flags = graph.node("Cast", "mask", to=TensorProto.FLOAT)
    row = graph.node("Unsqueeze", flags, graph.constant("axis of rows", np.array([1])))
    total = graph.node("Squeeze", graph.node("MatMul", row, x), graph.constant("axis of rows", np.array([1])))
    count = graph.node("ReduceSum", flags, graph.constant("axis of rows", np.array([1])), keepdims=1)
    graph.node("LpNormalization", graph.node("Div", total, count), axis=-1, p=2)
    return graph.model(["ids", "mask"], ["B", "S"], TensorProto.INT32, ["B", E])


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
        # The operator requires interleaved heads, at least for q; moving them is cheap compared with S² D.
        merged = g.constant("merged", np.array([0, 0, H * D]))
        q, k, v = (g.node("Reshape", g.node("Transpose", name, perm=[0, 2, 1, 3]), merged) for name in "qkv")
        y = g.fused("MultiHeadAttention", q, k, v, num_heads=H)
        g.node("Transpose", g.node("Reshape", y, g.constant("heads", np.array([0, 0, H, D]))), perm=[0, 2, 1, 3])
    return g.model("qkv", ["B", H, "S", D])


def write(name, make, call, inputs):
    """Both graphs, make(form), each compared with PyTorch's call for two sizes, inputs(B, S)."""
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


def write_int8(name, call, given):
    """Both graphs quantized with signed weights, which their kernels are fastest with, and a scale for each column. In 7 bits, as their authors
    advise: sums of products with 8 saturate where the processor has no VNNI (AVX2: a cosine of 0.978). The time is the same."""
    for ending in FORMS:
        unfinished = FOLDER / f"{name}.part"
        # The type of the fused operators' outputs cannot be inferred.
        quantize_dynamic(FOLDER / f"{name}{ending}", unfinished, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8,
                         extra_options={"DefaultTensorType": TensorProto.FLOAT})
        session = onnxruntime.InferenceSession(unfinished, providers=["CPUExecutionProvider"])
        with torch.inference_mode():
            expected = call(*given.values()).numpy().ravel()
        y = session.run(None, {key: value.numpy() for key, value in given.items()})[0].ravel()
        cosine = float(y @ expected / np.sqrt((y @ y) * (expected @ expected)))
        if not cosine > INT8_COSINE:
            raise SystemExit(f"{name}.int8{ending}: a cosine of {cosine:.4f} with PyTorch")
        print(f"{name}.int8{ending}: a cosine of {cosine:.4f} with PyTorch")
        unfinished.rename(FOLDER / f"{name}.int8{ending}")


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


class Text(torch.nn.Module):
    """The published text model as PyTorch's encoder between embeddings and pooling; state() returns the parameters for the graphs."""

    HALVES = ("weight", "bias")
    NAMES = {"attention.output.dense": "self_attn.out_proj", "attention.output.LayerNorm": "norm1", "intermediate.dense": "linear1",
             "output.dense": "linear2", "output.LayerNorm": "norm2"}

    def __init__(self, folder):
        super().__init__()
        config, published = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
        self.layers, self.E, self.H = (config[name] for name in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
        self.epsilon, self.vocabulary = config["layer_norm_eps"], config["vocab_size"]
        self.words, self.positions, self.types = (published[f"embeddings.{name}_embeddings.weight"]
                                                  for name in ("word", "position", "token_type"))
        layer = torch.nn.TransformerEncoderLayer(self.E, self.H, config["intermediate_size"], activation="gelu", layer_norm_eps=self.epsilon,
                                                 batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, self.layers, enable_nested_tensor=False)
        self.norm = torch.nn.LayerNorm(self.E, eps=self.epsilon)
        state = {}
        for half in self.HALVES:
            self.norm.get_parameter(half).data = published[f"embeddings.LayerNorm.{half}"]
            for i in range(self.layers):
                parts = [published[f"encoder.layer.{i}.attention.self.{name}.{half}"] for name in ("query", "key", "value")]
                state[f"layers.{i}.self_attn.in_proj_{half}"] = torch.cat(parts)
                for theirs, torchs in self.NAMES.items():
                    state[f"layers.{i}.{torchs}.{half}"] = published[f"encoder.layer.{i}.{theirs}.{half}"]
        self.encoder.load_state_dict(state)
        self.eval()

    def state(self):
        tables = {"words": self.words, "positions": self.positions, "types": self.types}
        norm = {f"norm.{half}": self.norm.get_parameter(half).detach() for half in self.HALVES}
        return {name: value.numpy() for name, value in (tables | norm | self.encoder.state_dict()).items()}

    def forward(self, ids, mask):
        x = self.norm(self.words[ids] + self.types[0] + self.positions[: ids.shape[1]])
        x = self.encoder(x, src_key_padding_mask=mask == 0)
        flags = mask[:, :, None].to(x.dtype)
        return torch.nn.functional.normalize((x * flags).sum(1) / flags.sum(1), dim=-1)

    def inputs(self, B, S):
        """Random ids, with shorter later rows."""
        ids = torch.randint(self.vocabulary, (B, S), generator=torch.Generator().manual_seed(S), dtype=torch.int32)
        return {"ids": ids, "mask": (torch.arange(S) < S - torch.arange(B)[:, None]).to(torch.int32)}


def fetched():
    """Downloads the text model's files if missing; returns whether they exist."""
    if not (CHECKPOINT / "model.safetensors").exists():
        print(f"fetching {CHECKPOINT.name}, 91 MB, to models/", flush=True)
    done = subprocess.run([sys.executable, FETCH], stdout=subprocess.DEVNULL).returncode == 0
    if not done:
        print(f"{CHECKPOINT.name} could not be downloaded; its cases are skipped")
    return done


def write_text_model():
    model = Text(CHECKPOINT)
    state = model.state()
    write(CHECKPOINT.name, lambda form: text_graph(form, state, model.layers, model.E, model.H, model.epsilon), model, model.inputs)
    write_int8(CHECKPOINT.name, model, model.inputs(3, 40))


def main():
    table = json.loads(CASES.read_text())
    FOLDER.mkdir(parents=True, exist_ok=True)
    has_checkpoint = fetched()
    # Keeps models written by the same sources.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()
    stamp = FOLDER / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for seed, (name, shape) in enumerate(table["models"].items(), start=1):
        model = encoder(**shape, seed=seed)
        state = {key: value.numpy() for key, value in model.state_dict().items()}
        layers, E, H = shape["layers"], shape["E"], shape["H"]
        write(name, lambda form: encoder_graph(form, state, layers, E, H), model, lambda B, S: {"x": random(B, S, E)})
        write_int8(name, model, {"x": random(3, 40, E)})
        save_file(model.state_dict(), FOLDER / f"{name}.safetensors")
    for E, H in sorted({(case["E"], case["H"]) for case in table["cases"] if case["kind"] == "mha"}):
        layer = pytorch.mha_layer(E, H)
        state = {key: value.numpy() for key, value in layer.state_dict().items()}
        write(f"mha-{E}-{H}", lambda form: mha_graph(form, state, E, H), lambda x: layer(x, x, x)[0], lambda B, S: {"x": random(B, S, E)})
    for H, D in sorted({(case["H"], case["D"]) for case in table["cases"] if case["kind"] == "sdpa"}):
        write(f"sdpa-{H}-{D}", lambda form: sdpa_graph(form, H, D), torch.nn.functional.scaled_dot_product_attention,
              lambda B, S: {name: random(B, H, S, D) for name in "qkv"})
    if has_checkpoint:
        write_text_model()
        stamp.write_text(digest)  # written last, so that an interrupted run starts again


if __name__ == "__main__":
    main()
