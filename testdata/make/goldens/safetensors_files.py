"""Small files for the safetensors reader: testdata/safetensors_python.safetensors, written by the Python package, and
safetensors_unaligned.safetensors, written byte by byte; each with its values in a JSON file of the same name."""

import json
import math
import struct

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

import common

# Special values of half precision: zeros, subnormals, the smallest and largest normals, around 1, infinities, NaNs.
F16_BITS = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x0155, 0x0200, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x0401, 0x2E66, 0x3555, 0x3BFF,
    0x3C00, 0x3C01, 0xBC00, 0x4248, 0x7BFE, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFE00, 0x7FFF, 0xFFFF,
]  # fmt: skip
F32_BITS = [
    0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x33800000, 0x3F7FFFFF, 0x3F800000, 0xBF800000, 0x40490FDB,
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
]  # fmt: skip


def number(value):
    """JSON has no NaN and no infinities: they are strings that JavaScript's Number() can read."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def describe(path, metadata, tensors):
    """The values that the reader must return: float32, row-major."""
    expected = {
        "metadata": metadata,
        "tensors": [
            {
                "name": name,
                "dtype": {4: "F32", 2: "F16"}[array.itemsize],
                "dims": list(array.shape),
                "data": [number(v) for v in array.astype(np.float32).ravel()],
            }
            for name, array in sorted(tensors.items())
        ],
    }
    lines = ",\n".join("    " + json.dumps(tensor, allow_nan=False) for tensor in expected["tensors"])
    text = f'{{\n  "metadata": {json.dumps(metadata)},\n  "tensors": [\n{lines}\n  ]\n}}\n'
    assert json.loads(text) == expected
    path.with_suffix(".json").write_text(text)

    with safe_open(path, "np") as file:
        assert file.metadata() == metadata
        assert set(file.keys()) == set(tensors)
        for name, array in tensors.items():
            read = file.get_tensor(name)
            assert read.dtype == array.dtype and read.shape == array.shape and read.tobytes() == array.tobytes(), name
    print(f"{path.relative_to(common.ROOT)}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def written_by_python():
    half = np.array(F16_BITS, np.uint16).view(np.float16)
    tensors = {
        "f16.corners": half,
        "f16.corners_as_f32": half.astype(np.float32),
        "f32.corners": np.array(F32_BITS, np.uint32).view(np.float32),
        "rank_0": np.array(1.5, np.float32),
        "rank_0_f16": np.array(-2.25, np.float16),
        "rank_5": (np.arange(12, dtype=np.float32) / 8).reshape(1, 2, 1, 3, 2),
        "rank_8_f16": np.arange(8, dtype=np.float16).reshape(1, 2, 1, 2, 1, 1, 2, 1),
        "zero_size": np.zeros((0, 3), np.float32),
        "zero_size_in_the_middle": np.zeros((2, 0, 5), np.float16),
        "with space/and.dots-": np.array([[1, 2], [3, 4]], np.float32),
        'quote " and backslash \\': np.array([0.1, 0.2, 0.3], np.float32),
        "tab\tline\nbreak\u0001control": np.array([0.1], np.float16),
        "Größe/日本語/🙂": np.array([7], np.float32),
        "\u2028": np.array([0.5, -0.5, 0.25], np.float16),
        "__proto__": np.array([42], np.float32),
    }
    # One entry only: the package stores metadata in a hash map, whose order is random.
    metadata = {"note": 'a "quoted" \\ value\nwith a line break, grün, 🙂'}
    path = common.TESTDATA / "safetensors_python.safetensors"
    save_file(tensors, path, metadata=metadata)
    path.chmod(0o644)  # the package makes it readable only by its owner
    describe(path, metadata, tensors)


def spelled_out():
    """A valid file with features that our writers do not produce: header without padding, keys in an unusual order, names and metadata with
    \\u escapes, whitespace, tensors at odd addresses and in another order than in the header."""
    half, single = np.array([1.5, -2, 65504], np.float16), np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
    last = np.array([3], np.float32)
    tensors = {"z_first": half, "middle \u00e9 \U0001f642": single, "a_last": last}
    header = (
        '{ "a_last" : {"shape":[1],"data_offsets":[22,26],"dtype":"F32"},\n'
        '\t"__metadata__": {"b": "\\u0041\\/\\ud83d\\ude42", "a": ""},'
        '"middle \\u00E9 \\ud83d\\ude42":{"data_offsets":[6,22],"dtype":"F32","shape":[2,2]},'
        ' "z_first":{"dtype":"F16","shape":[3],"data_offsets":[0,6]}}'
    ).encode()
    header += b" " * (len(header) % 2 == 0)  # an odd length, so that the data begins at an odd address
    assert len(header) % 2 == 1
    path = common.TESTDATA / "safetensors_unaligned.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + half.tobytes() + single.tobytes() + last.tobytes())
    describe(path, {"a": "", "b": "A/🙂"}, tensors)


def generate():
    written_by_python()
    spelled_out()


if __name__ == "__main__":
    generate()
