"""Images as PNG files in the HTML of notebooks, without Pillow."""

import math
import struct
import zlib
from typing import Any, cast

import numpy
from numpy.typing import NDArray

from ._results import ImageCrop

Pixels = NDArray[numpy.uint8]

def pixels_of(image: Any) -> Pixels:
    """Returns (height,width,3) of an image that preprocess() has accepted."""
    one: Any = cast("list[Any]", image)[0] if isinstance(image, list | tuple) else image
    array: Pixels = numpy.asarray(one.convert("RGB") if hasattr(one, "convert") else one)
    if array.ndim == 4:
        array = array[0]
    if array.ndim == 2:
        array = array[..., None]
    return numpy.ascontiguousarray(array[..., :3] if array.shape[2] > 1 else array.repeat(3, axis=2))


def reduced(image: Pixels, crop: ImageCrop, largest: int = 512) -> tuple[Pixels, ImageCrop]:
    """Returns a copy of the pixels around the crop, as means of squares if a side is larger, and the crop in it."""
    left, top = max(0, math.floor(crop.left)), max(0, math.floor(crop.top))
    part = image[top : math.ceil(crop.top + crop.height), left : math.ceil(crop.left + crop.width)]
    side = max(1, math.ceil(max(part.shape[:2]) / largest))
    rows, columns = (math.ceil(size / side) for size in part.shape[:2])
    # The last squares repeat the edge.
    padded = numpy.pad(part, ((0, rows * side - part.shape[0]), (0, columns * side - part.shape[1]), (0, 0)), mode="edge")
    means = padded.reshape(rows, side, columns, side, 3).mean(axis=(1, 3))
    scaled = ImageCrop(*(size / side for size in (crop.left - left, crop.top - top, crop.width, crop.height)))
    return numpy.rint(means).astype(numpy.uint8), scaled


def png(image: Pixels) -> bytes:
    """Returns a PNG file of an RGB image."""
    height, width = image.shape[:2]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    # Each line begins with the number of its filter, 0.
    lines = numpy.concatenate([numpy.zeros((height, 1), numpy.uint8), image.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines.tobytes())), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
