"""Code that all golden scripts share: the portable generator, the golden file and the explicit formulas."""

import json
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[3]
TESTDATA = ROOT / "testdata"

# One thread: the stored float32 errors must not depend on the number of cores.
torch.set_num_threads(1)
torch.set_grad_enabled(False)


# ---------------------------------------------------------------- portable generator (testdata/README.md)


def hash32(seed, index):
    """MurmurHash3's 32-bit finaliser of seed * 0x9E3779B1 + index, all modulo 2^32."""
    h = (np.uint64(seed) * np.uint64(0x9E3779B1) + np.asarray(index, np.uint64)) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(16)
    h = (h * np.uint64(0x85EBCA6B)) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(13)
    h = (h * np.uint64(0xC2B2AE35)) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(16)
    return h


def uniform(seed, dims, factor=1.0):
    """Values in [-factor, factor). The factor is a power of two, so every value is exact in float32."""
    count = int(np.prod(dims))
    u = (hash32(seed, np.arange(count)) >> np.uint64(8)).astype(np.float64) * 2.0**-23 - 1.0
    return torch.from_numpy((u * factor).astype(np.float32).reshape(dims))


def normal(seed, dims):
    """Approximates N(0, 1) by half the sum of twelve uniforms. The sum is exact in float64 and rounded once, to float32."""
    count = int(np.prod(dims))
    u = (hash32(seed, np.arange(12 * count)) >> np.uint64(8)).astype(np.float64) * 2.0**-23 - 1.0
    return torch.from_numpy((0.5 * u.reshape(count, 12).sum(axis=1)).astype(np.float32).reshape(dims))


class Draw:
    """Draws the inputs of one case: each call takes the next seed, and the first seed is derived from the name of the case, so that adding a case
    does not change the others."""

    def __init__(self, name):
        self.seed = zlib.crc32(name.encode())

    def next_seed(self):
        self.seed = (self.seed + 1) & 0xFFFFFFFF
        return self.seed

    def normal(self, *dims, std=1.0):
        return (normal(self.next_seed(), dims) * std).float()

    def coin(self, *dims, p):
        """A bool tensor, true with probability p."""
        return (uniform(self.next_seed(), dims) + 1) / 2 < p


# ---------------------------------------------------------------- the golden file


class GoldenFile:
    """Collects tensors and case descriptions, and writes them as one safetensors file.

    The file is not written by the safetensors package, because it stores metadata in a hash map whose order changes from run to run, and goldens are
    compared byte for byte."""

    def __init__(self, **metadata):
        self.tensors = {}
        self.metadata = dict(metadata, torch=torch.__version__.split("+")[0])
        self.cases = []

    def add(self, name, tensor):
        """Stores float16 as F16, bool as 0 and 1, anything else as F32."""
        assert name not in self.tensors, name
        tensor = tensor.detach()
        array = tensor.numpy() if tensor.dtype == torch.float16 else tensor.to(torch.float32).numpy()
        self.tensors[name] = np.ascontiguousarray(array)

    def expect(self, case, name, value32, value64):
        """Stores the float64 value, rounded to float32, and writes the error of float32 into the case."""
        self.add(f"{case['name']}/expected.{name}", value64)
        case["expected"][name] = max_error(value32, value64)

    def write(self, path, limit=1_500_000):
        metadata = dict(self.metadata)
        if self.cases:
            names = [case["name"] for case in self.cases]
            assert len(set(names)) == len(names), "case names repeat"
            metadata["cases"] = json.dumps(self.cases, separators=(",", ":"), allow_nan=False)
        header, blobs, start = {"__metadata__": dict(sorted(metadata.items()))}, [], 0
        # Wider types first, so that every tensor is aligned to its element size, as in the safetensors package.
        for name in sorted(self.tensors, key=lambda n: (-self.tensors[n].itemsize, n)):
            array = self.tensors[name]
            header[name] = {
                "dtype": {4: "F32", 2: "F16"}[array.itemsize],
                "shape": list(array.shape),
                "data_offsets": [start, start + array.nbytes],
            }
            blobs.append(array.tobytes())
            start += array.nbytes
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        data = struct.pack("<Q", len(text)) + text + b"".join(blobs)
        assert len(data) <= limit, f"{path}: {len(data)} bytes"
        path.write_bytes(data)
        self._check(path)
        print(f"{path.relative_to(ROOT)}: {len(self.cases)} cases, {len(self.tensors)} tensors, {len(data)} bytes")

    def _check(self, path):
        """Reads the written file with the safetensors package."""
        from safetensors.numpy import load_file

        read = load_file(path)
        assert read.keys() == self.tensors.keys()
        for name, array in self.tensors.items():
            assert read[name].shape == array.shape and read[name].tobytes() == array.tobytes(), name


SMALL = 1024  # results with more values are stored by rows
ROWS = 6


class Case:
    """One case of a golden file, written step by step."""

    def __init__(self, golden, name, op, **more):
        self.golden, self.name = golden, name
        self.json = {"name": name, "op": op, **more, "inputs": [], "expected": {}}
        golden.cases.append(self.json)

    def store(self, name, tensor):
        """Adds an input that is stored in the file."""
        self.json["state" if name.startswith("state.") else "inputs"].append(name.removeprefix("state."))
        self.golden.add(f"{self.name}/{name}", tensor)
        return tensor

    def generate(self, name, kind, seed, dims, factor=1):
        """Adds an input that readers generate from its seed."""
        self.json["state" if name.startswith("state.") else "inputs"].append(name.removeprefix("state."))
        described = {"kind": kind, "seed": seed, "dims": list(dims)}
        if kind == "uniform":
            described["factor"] = factor
        self.json.setdefault("generated", {})[name] = described
        return uniform(seed, dims, factor) if kind == "uniform" else normal(seed, dims)

    def expect(self, name, value32, value64):
        if value64.numel() <= SMALL:
            self.golden.expect(self.json, name, value32, value64)
            return
        flat = value64.reshape(-1, value64.shape[-1])
        rows = [i * (len(flat) - 1) // (ROWS - 1) for i in range(ROWS)]
        self.json["expected"][name] = max_error(value32, value64)
        self.json.setdefault("rows", {})[name] = {
            "dims": list(value64.shape),
            "rows": rows,
            "sum": math.fsum(value64[torch.isfinite(value64)].tolist()),
        }
        self.golden.add(f"{self.name}/expected.{name}", flat[rows])


def both(run, *names):
    """(name, float32 value, float64 value) for each name that run(dtype) returns."""
    single, double = run(torch.float32), run(torch.float64)
    return [(name, single[name], double[name]) for name in names]


def max_error(value32, value64):
    """Largest |float32 - float64|. NaN and infinities must be at the same positions and are not counted."""
    a, b = value32.double(), value64.double()
    assert a.shape == b.shape, (a.shape, b.shape)
    finite = torch.isfinite(b)
    assert torch.equal(torch.isfinite(a), finite)
    same = torch.equal(a[~finite].nan_to_num(nan=0.5), b[~finite].nan_to_num(nan=0.5))
    assert same, "NaN or infinities differ"
    return float((a[finite] - b[finite]).abs().max()) if bool(finite.any()) else 0.0


def assert_close(a, b, what, tolerance=1e-12):
    """Checks that two computations in float64 agree."""
    assert max_error(a, b) <= tolerance * max(1.0, float(b.nan_to_num(0, 0, 0).abs().max()) if b.numel() else 1.0), what


# ---------------------------------------------------------------- attention by definition


def mask_terms(mask):
    """{'kind', 'data'} -> (allowed, additive or None), both broadcastable to (B, H, L, S)."""
    kind, data = mask["kind"], mask["data"]
    if kind == "attend":
        return data != 0, None
    if kind == "block":
        return data == 0, None
    return data != -torch.inf, data


def combine(dims, masks, causal):
    """Combines all masks: allowed (B, H, L, S), and the sum of the finite additive parts or None."""
    length, keys = dims[-2:]
    allowed, additive = torch.ones(dims, dtype=torch.bool), None
    if causal:
        allowed &= torch.ones(length, keys, dtype=torch.bool).tril()
    for mask in masks:
        ok, extra = mask_terms(mask)
        allowed &= ok
        if extra is not None:
            extra = torch.where(ok, extra, 0).double().expand(dims)
            additive = extra if additive is None else additive + extra
    return allowed, additive


def attention(query, key, value, scale, allowed, additive, policy="zero"):
    """The definition in SEMANTICS.md, step by step, in the dtype of the inputs: rank 4, one key head per query head. Masked keys are excluded from
    every sum, so that their content has no effect."""
    return attend(query @ key.transpose(-2, -1) * scale, value, allowed, additive, policy)


class WithoutKeys(torch.autograd.Function):
    """Returns the queries unchanged; their gradient is NaN if they see no key (policy nan)."""

    @staticmethod
    def forward(ctx, query, empty):
        ctx.save_for_backward(empty)
        return query.clone()

    @staticmethod
    def backward(ctx, grad):
        return torch.where(ctx.saved_tensors[0], torch.nan, grad), None


def scores_of_pairs(query, key, allowed):
    """query keyᵀ of the visible pairs, 0 for others: the content of a query or key reaches only gradients of what it sees, and the gradient of a
    query without keys is NaN."""
    query, pairs = WithoutKeys.apply(query, ~allowed.any(-1, keepdim=True)), allowed.unsqueeze(-1)
    return (torch.where(pairs, query.unsqueeze(-2), 0) * torch.where(pairs, key.unsqueeze(-3), 0)).sum(-1)


def attend(scores, value, allowed, additive, policy="zero"):
    """Everything after the scores, which may come from any score function."""
    steps = {"scores": scores}
    masked = scores if additive is None else scores + additive.to(scores.dtype)
    masked = torch.where(allowed, masked, -torch.inf)
    steps["masked_scores"] = masked
    empty = ~allowed.any(-1, keepdim=True)
    if masked.shape[-1] == 0:
        weights = torch.zeros_like(masked)
    else:
        # Replaces the divisor and maximum of rows without keys: otherwise NaN would reach their gradients.
        exp = torch.where(allowed, torch.exp(masked - torch.where(empty, 0, masked.amax(-1, keepdim=True))), 0)
        weights = exp / torch.where(empty, 1, exp.sum(-1, keepdim=True))
    counted = allowed
    if policy == "zero":
        weights = torch.where(empty, 0, weights)
    elif policy == "nan":
        weights = torch.where(empty, torch.nan, weights)
        counted = allowed | empty
    else:
        weights = torch.where(empty, 1 / max(1, weights.shape[-1]), weights)
        counted = allowed | empty
    # Leaves invisible values out of the product: otherwise a NaN row would reach their gradients.
    values = torch.where((allowed if policy == "nan" else counted).unsqueeze(-1), value.unsqueeze(-3), 0)
    terms = torch.where(counted.unsqueeze(-1), weights.unsqueeze(-1) * values, 0)
    context = terms.sum(-2)
    if policy == "nan":
        context = torch.where(empty, torch.nan, context)
    steps.update(probabilities=weights, weights=weights, weighted_values=terms, context=context)
    return steps
