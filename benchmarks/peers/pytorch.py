"""PyTorch as a contender: one measurement for each JSON line on stdin, {"case": {..}, "shape": {..}, "threads": 1, "least": 20,
"variant": "fast path" or ""}.

Eval and inference mode. The fast path of nn.TransformerEncoder and nn.MultiheadAttention is not always the faster one, so run.mjs measures
both. Where weights are asked for, attention is written out, since F.scaled_dot_product_attention has none to give.
"""

import functools
import json
import pathlib
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

MODELS = pathlib.Path(__file__).resolve().parents[2] / "build" / "bench" / "models"


def numbers(*shape, seed, divisor=1.0):
    """Numbers in [-1, 1), determined by the seed like those of attn and the other peers."""
    count = int(np.prod(shape))
    powers = np.cumprod(np.full(count, 1664525, np.uint32), dtype=np.uint32)
    sums = np.cumsum(np.concatenate(([1], powers[:-1])), dtype=np.uint32)
    states = powers * np.uint32(seed) + sums * np.uint32(1013904223)
    values = (states >> 8).astype(np.float32) * np.float32(2**-23) - np.float32(1)
    return torch.from_numpy(values / np.float32(divisor)).reshape(shape)


def gemm(case, _):
    if case.get("int8"):
        return None
    x, weight, bias = numbers(case["M"], case["K"], seed=1), numbers(case["N"], case["K"], seed=2), numbers(case["N"], seed=3)
    return lambda: F.linear(x, weight, bias)


def sdpa(case, _):
    shape = [case[letter] for letter in "BHSD"]
    q, k, v = (numbers(*shape, seed=seed) for seed in (1, 2, 3))
    if not case["weights"]:
        return lambda: F.scaled_dot_product_attention(q, k, v)

    def written_out():
        weights = torch.softmax(q @ k.mT * shape[3] ** -0.5, dim=-1)
        return weights @ v, weights

    return written_out


def mha_layer(E, H):
    """Has the same weights as in attn and the other peers."""
    layer = torch.nn.MultiheadAttention(E, H, batch_first=True).eval()
    root = E**0.5
    layer.load_state_dict({
        "in_proj_weight": numbers(3 * E, E, seed=4, divisor=root), "in_proj_bias": numbers(3 * E, seed=5, divisor=root),
        "out_proj.weight": numbers(E, E, seed=6, divisor=root), "out_proj.bias": numbers(E, seed=7, divisor=root)})
    return layer


def mha(case, _):
    layer = mha_layer(case["E"], case["H"])
    x = numbers(case["B"], case["S"], case["E"], seed=1)
    return lambda: layer(x, x, x, need_weights=case["weights"], average_attn_weights=False)


@functools.lru_cache(maxsize=1)
def encoder_of(name, layers, E, H, F):
    layer = torch.nn.TransformerEncoderLayer(E, H, F, dropout=0.0, activation="gelu", batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers).eval()
    model.load_state_dict(load_file(MODELS / f"{name}.safetensors"))
    return model


def encoder(case, shape):
    if case["weights"] or case.get("int8"):
        return None  # its quantized layers replace nn.MultiheadAttention
    model = encoder_of(case["model"], **shape)
    x = numbers(case["B"], case["S"], shape["E"], seed=1)
    return lambda: model(x)


class Training(torch.nn.Module):
    """An encoder with a classifier of every token, with the same initial weights as in attn and the other peers (wasm/training.mjs)."""

    def __init__(self, case, shape):
        super().__init__()
        E, F, H, layers, classes = (shape["E"], shape["F"], shape["H"], shape["layers"], case["classes"])
        layer = torch.nn.TransformerEncoderLayer(E, H, F, dropout=0.0, activation=case["activation"], batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, layers)
        self.classifier = torch.nn.Linear(E, classes)
        for seed, (name, parameter) in enumerate(self.named_parameters(), 10):
            if ".norm" in name:
                torch.nn.init.constant_(parameter, float(name.endswith("weight")))
            else:
                parameter.data = numbers(*parameter.shape, seed=seed, divisor=E**0.5)
        self.x = numbers(case["B"], case["S"], E, seed=1)
        self.labels = ((numbers(case["B"] * case["S"], seed=2) + 1) / 2 * classes).long()
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=1e-2)

    def step(self):
        loss = F.cross_entropy(self.classifier(self.encoder(self.x)).flatten(0, 1), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def training(case, shape):
    if case["part"] != "step":
        return None
    with torch.inference_mode(False), torch.enable_grad():
        first, own = Training(case, shape), Training(case, shape)
        losses = torch.tensor([first.step() for _ in range(4)])

    def step():
        with torch.inference_mode(False), torch.enable_grad():
            own.step()
        return losses

    return step


KINDS = {"gemm": gemm, "sdpa": sdpa, "mha": mha, "encoder": encoder, "training": training}


@functools.lru_cache(maxsize=1)
def prepared(line):
    """The call of a case; its set-up is cached, because the case is requested once per sample."""
    case, shape = json.loads(line)
    return KINDS[case["kind"]](case, shape) if case["kind"] in KINDS else None


def run(call, calls):
    """Returns milliseconds, and the last result."""
    start = time.perf_counter()
    for _ in range(calls):
        result = call()
    return (time.perf_counter() - start) * 1e3, result


def measure(request):
    torch.set_num_threads(request["threads"])
    torch.backends.mha.set_fastpath_enabled(request["variant"] == "fast path")
    call = prepared(json.dumps([request["case"], request.get("shape")]))
    if call is None:
        return {"absent": True}
    # Increases the calls until they take long enough, like Google Benchmark; earlier ones are the warm-up.
    calls = 1
    while True:
        spent, result = run(call, calls)
        if spent >= request["least"]:
            break
        calls = min(10 * calls, int(calls * 1.4 * request["least"] / max(spent, 1e-6)) + 1)
    output = (result[0] if isinstance(result, tuple) else result).flatten()
    probe = [float(output[i * (len(output) - 1) // 3]) for i in range(4)]
    return {"ms": spent / calls, "calls": calls, "probe": probe}


def main():
    answer = lambda line: print(json.dumps(line), flush=True)
    answer({"engine": f"PyTorch {torch.__version__.split('+')[0]}"})
    with torch.inference_mode():
        for line in sys.stdin:
            try:
                answer(measure(json.loads(line)))
            except RuntimeError as error:
                answer({"error": str(error)})


if __name__ == "__main__":
    main()
