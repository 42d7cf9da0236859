"""testdata/onnx.safetensors and onnx.md: ONNX's backend node tests of the operators that attn has.

Inputs, attributes and results are those of the PyPI package onnx. This script adds the error of float32, by running ONNX's reference in float64, and
results for rotary angles, by the same reference."""

import importlib
import json
import textwrap
from collections import Counter

import numpy as np
import onnx
import onnx.backend.test.case.node as node_cases
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator

import common

OPERATORS = ("Attention", "RotaryEmbedding", "LayerNormalization", "RMSNormalization", "Softmax", "Gelu", "Swish")
KNOWN = ("float32", "bool", "int64")  # allowed types of inputs and results; integers are lengths and positions

CACHES = "random numbers in cos_cache and sin_cache, which belong to no angle; attn turns by angles, position / theta^(2i/D)"
LEFT_OUT_RESULTS = {
    "LayerNormalization": {
        "Mean": "layerNorm returns the normalised values alone",
        "InvStdDev": "layerNorm returns the normalised values alone",
    }
}
# Cases with angles are created here: the same input and attributes, with caches as in models.
THETA = 10000.0
ANGLES = "_of_angles"


class NodeCase:
    """A node test: one node, its inputs and results by name. Omitted inputs and results have an empty name."""

    def __init__(self, test):
        self.model = test.model
        (node,) = self.model.graph.node
        (data,) = test.data_sets
        self.name, self.op = test.name, node.op_type
        self.opset = next(each.version for each in self.model.opset_import if each.domain == "")
        self.attributes = {}
        for attribute in node.attribute:
            value = helper.get_attribute_value(attribute)
            self.attributes[attribute.name] = value.decode() if isinstance(value, bytes) else value
        self.inputs = dict(zip([name for name in node.input if name], data[0], strict=True))
        self.results = dict(zip([name for name in node.output if name], data[1], strict=True))

    def foreign_types(self):
        types = {str(array.dtype) for array in [*self.inputs.values(), *self.results.values()]}
        return sorted(types.difference(KNOWN))

    def run(self, inputs):
        """Results of ONNX's reference in the dtype of the inputs."""
        return dict(zip(self.results, ReferenceEvaluator(self.model).run(None, inputs), strict=True))


def collect():
    """All cases of the operators, without those that express the same by a graph of simpler operators."""
    for operator in OPERATORS:
        importlib.import_module(f"onnx.backend.test.case.node.{operator.lower()}")
    cases = [NodeCase(test) for test in node_cases._NodeTestCases if "_expanded" not in test.name]
    assert {case.op for case in cases} == set(OPERATORS)
    return cases


def in_float64(inputs):
    return {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in inputs.items()}


def store(golden, entry, inputs, results, exact):
    """Adds a case to the file. Everything is stored as F32; `exact` has the results in float64."""
    golden.cases.append(entry)
    entry["inputs"] = {name: str(array.dtype) for name, array in inputs.items()}
    entry["expected"] = {}
    for name, array in inputs.items():
        assert np.array_equal(array.astype(np.float32), array)
        golden.add(f"{entry['name']}/{name}", torch.from_numpy(np.ascontiguousarray(array)))
    for name, array in results.items():
        value32, value64 = torch.from_numpy(array), torch.from_numpy(exact[name])
        error = common.max_error(value32, value64)
        finite = array[np.isfinite(array)]
        assert error <= 1e-6 * max(1, np.abs(finite).max(initial=0)), (entry["name"], name, error)
        golden.add(f"{entry['name']}/expected.{name}", value32)
        entry["expected"][name] = error


def add_case(golden, case):
    left_out = LEFT_OUT_RESULTS.get(case.op, {})
    results = {name: array for name, array in case.results.items() if name not in left_out}
    entry = {"name": case.name, "op": case.op, "opset": case.opset, "attributes": case.attributes}
    entry["leftOut"] = {name: reason for name, reason in left_out.items() if name in case.results}
    store(golden, entry, case.inputs, results, case.run(in_float64(case.inputs)))


def add_angles(golden, case):
    """Caches of angles computed from positions, as in models."""
    x = case.inputs["input"]
    batch, length = x.shape[0], x.shape[-2 if x.ndim == 4 else 1]
    half = case.inputs["cos_cache"].shape[-1]
    frequencies = THETA ** (-np.arange(half) / half)
    given = case.inputs.get("position_ids")
    # Without position_ids the caches have a row per row of x: here the second text begins 7 positions later.
    positions = np.arange(length) + 7 * np.arange(batch)[:, None] if given is None else given
    angles = (np.arange(len(case.inputs["cos_cache"])) if given is not None else positions)[..., None] * frequencies
    exact = in_float64(case.inputs) | {"cos_cache": np.cos(angles), "sin_cache": np.sin(angles)}
    rounded = {name: array.astype(case.inputs[name].dtype) for name, array in exact.items()}
    entry = {"name": case.name + ANGLES, "op": case.op, "opset": case.opset, "attributes": case.attributes}
    entry |= {"of": case.name, "theta": THETA, "leftOut": {}}
    store(golden, entry, {"input": x, "position_ids": positions}, case.run(rounded), case.run(exact))


def left_out_of(cases):
    """Names of the omitted cases with the reason."""
    reasons = {}
    for case in cases:
        types = case.foreign_types()
        if types:
            reasons[case.name] = f"computes in {' and '.join(types)}; attn's tensors are float32"
        elif case.op == "RotaryEmbedding":
            reasons[case.name] = CACHES
    return reasons


# ---------------------------------------------------------------- the list in testdata/onnx.md


def names_of(names):
    """Formats names as a paragraph."""
    text = ", ".join(f"`{name.removeprefix('test_')}`" for name in names)
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def write_list(path, cases, left_out, angles):
    """Writes the Markdown list of cases that run and of those that do not."""
    lines = [
        "# ONNX's test cases\n",
        textwrap.fill(
            f"The backend node tests of ONNX {onnx.__version__} for the operators that attn has: which of them run here, in Node and natively, and"
            " why the others do not. `onnx.safetensors` has their numbers, README.md describes how the suites call attn. Written by"
            " `testdata/make/goldens/onnx_cases.py`; the names are ONNX's without `test_`.",
            120,
        )
        + "\n",
        "| operator | opset | cases | run | left out |",
        "|---|---|---|---|---|",
    ]
    total, missing = Counter((case.op, case.opset) for case in cases), Counter((case.op, case.opset) for case in cases if case.name in left_out)
    for (op, opset), count in total.items():
        lines.append(f"| {op} | {opset} | {count} | {count - missing[op, opset]} | {missing[op, opset]} |")
    lines.append(f"| all | | {len(cases)} | {len(cases) - len(left_out)} | {len(left_out)} |\n")

    lines.append("## Left out\n")
    for reason in dict.fromkeys(left_out.values()):
        lines += [textwrap.fill(reason[0].upper() + reason[1:] + ":", 120) + "\n", names_of(n for n, r in left_out.items() if r == reason)]
    for op, results in LEFT_OUT_RESULTS.items():
        for reason in dict.fromkeys(results.values()):
            names = " and ".join(f"`{name}`" for name, each in results.items() if each == reason)
            lines.append(f"In every case of {op}, the results {names}: {reason}.\n")
    lines.append(
        textwrap.fill(
            "Instead of the cases of RotaryEmbedding, the same inputs and attributes run with caches of angles, theta 10000, at the given"
            " `position_ids` or, if there are none, from 0 and 7 on. The results are those of ONNX's reference:",
            120,
        )
        + "\n"
    )
    lines.append(names_of(angles))
    lines.append(
        textwrap.fill(
            f"No case is left out for the order of softcap and mask: in ONNX {onnx.__version__}, opsets 23 to 25 all apply softcap before the mask,"
            " as attn does (the first text of opset 23 had it after the mask). These have both:",
            120,
        )
        + "\n"
    )
    lines.append(names_of(case.name for case in cases if "softcap" in case.attributes and "attn_mask" in case.inputs))

    lines.append("## Run\n")
    for op, opset in total:
        names = [case.name for case in cases if (case.op, case.opset) == (op, opset) and case.name not in left_out]
        if names:
            lines += [f"{op}, opset {opset}:\n", names_of(names)]
    path.write_text("\n".join(lines))
    print(f"{path.relative_to(common.ROOT)}: {len(cases)} cases, {len(left_out)} left out")


def generate():
    cases = collect()
    left_out = left_out_of(cases)
    golden = common.GoldenFile(
        onnx=onnx.__version__,
        collected=str(len(cases)),
        left_out=json.dumps(
            [{"name": case.name, "op": case.op, "opset": case.opset, "reason": left_out[case.name]} for case in cases if case.name in left_out],
            separators=(",", ":"),
        ),
    )
    angles = []
    for case in cases:
        if case.name not in left_out:
            add_case(golden, case)
        elif case.op == "RotaryEmbedding":
            add_angles(golden, case)
            angles.append(case.name + ANGLES)
    golden.write(common.TESTDATA / "onnx.safetensors")
    write_list(common.TESTDATA / "onnx.md", cases, left_out, angles)


if __name__ == "__main__":
    generate()
