"""Reads the cases of testdata (testdata/README.md) with numpy alone."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attn
import numpy

testdata = Path(__file__).parents[2] / "testdata"

_kinds = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_file(path: Path) -> tuple[dict[str, numpy.ndarray], dict[str, str]]:
    """Returns the tensors and the metadata of a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], _kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def uniform(seed: int, dims: list[int], factor: float) -> numpy.ndarray:
    i = numpy.arange(numpy.prod(dims), dtype=numpy.uint64)
    return (_units(seed, i) * factor).astype(numpy.float32).reshape(dims)


def normal(seed: int, dims: list[int]) -> numpy.ndarray:
    i = numpy.arange(12 * numpy.prod(dims), dtype=numpy.uint64)
    return (_units(seed, i).reshape(-1, 12).sum(axis=1) / 2).astype(numpy.float32).reshape(dims)


def _units(seed: int, i: numpy.ndarray) -> numpy.ndarray:
    most = numpy.uint64(0xFFFFFFFF)
    h = (numpy.uint64(seed * 0x9E3779B1 % 2**32) + i) & most
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> numpy.uint64(shift)
        h = h * numpy.uint64(factor) & most
    h ^= h >> numpy.uint64(16)
    return (h >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-23 - 1


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), name)


@dataclass
class Case:
    entry: dict[str, Any]
    tensors: dict[str, numpy.ndarray]

    def __getitem__(self, name: str) -> Any:
        return self.entry[name]

    def tensor(self, name: str) -> numpy.ndarray:
        recipe = dict(self.entry.get("generated", {}).get(name, {}))
        if recipe:
            return {"uniform": uniform, "normal": normal}[recipe.pop("kind")](**recipe)
        return self.tensors[f"{self['name']}/{name}"]

    def inputs(self) -> dict[str, numpy.ndarray]:
        return {name: self.tensor(name) for name in self["inputs"] if "mask" not in name}

    def state(self) -> dict[str, numpy.ndarray]:
        return {name: self.tensor(f"state.{name}") for name in self["state"]}

    def options(self, what: str = "options") -> dict[str, Any]:
        """Returns the options and masks by their Python names."""
        options = {snake(name): value for name, value in self.entry.get(what, {}).items()}
        if what == "options":
            for name in ("mask", "keyPaddingMask"):
                if name in self.entry:
                    options[snake(name)] = getattr(attn.Mask, self[name]["kind"])(self.tensor(self[name]["tensor"]))
        return options

    def check(self, what: str, got: numpy.ndarray, factor: float = 1) -> None:
        """Checks against the expected numbers, with the tolerance of testdata/README.md times a factor."""
        expected = self.tensor(f"expected.{what}")
        finite = numpy.isfinite(expected)
        most = max(1.0, float(numpy.abs(expected[finite]).max(initial=0)))
        allowed = factor * (2 * self["expected"][what] + 1e-6) * most
        if what in self.entry.get("rows", {}):
            stored = self["rows"][what]
            assert list(got.shape) == stored["dims"]
            assert abs(float(got.sum(dtype=numpy.float64)) - stored["sum"]) <= allowed * got.size
            got = got.reshape(-1, got.shape[-1])[stored["rows"]]
        assert got.dtype == numpy.float32
        assert got.shape == expected.shape
        assert (numpy.isfinite(got) == finite).all()
        assert (numpy.isnan(got) == numpy.isnan(expected)).all()
        assert ((got > 0) == (expected > 0))[~finite & ~numpy.isnan(expected)].all()
        assert numpy.abs(got[finite].astype(numpy.float64) - expected[finite]).max(initial=0) <= allowed, what

    def check_forward(self, output: attn.TextModelOutput) -> int:
        """Checks the results of a model's forward; returns how many."""
        count = 0
        for what in self["expected"]:
            kind, *place = what.split(".")
            got = {"lastHiddenState": output.last_hidden_state, "logits": output.logits}.get(kind)
            if kind in ("hiddenStates", "attentions"):
                got = getattr(output, snake(kind))[int(place[0])]
            elif kind not in ("lastHiddenState", "logits"):
                continue
            assert got is not None, what
            self.check(what, got, factor=2)
            count += 1
        return count


def cases(name: str, *ops: str) -> Iterator[Case]:
    tensors, metadata = read_file(testdata / f"{name}.safetensors")
    for entry in json.loads(metadata["cases"]):
        if entry["op"] in ops:
            yield Case(entry, tensors)


def hash_of(*arrays: numpy.ndarray) -> str:
    """Hashes sizes and 32-bit words of arrays by FNV-1a, as native-tests/digest/draw.hpp."""
    h = 0x811C9DC5
    for array in arrays:
        words = numpy.ascontiguousarray(array, numpy.float32).view(numpy.uint32).ravel()
        for word in [words.size, *numpy.where(numpy.isnan(array).ravel(), 0x7FC00000, words).tolist()]:
            h = (h ^ word) * 0x01000193 & 0xFFFFFFFF
    return f"{h ^ (h >> 15):08x}"
