"""The names of sentence-transformers, and the settings in a model's files."""

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from ._attn import TextModel
from ._errors import ArgumentError, ConfigError, DtypeError, ShapeError, UnsupportedError, fail

Floats = NDArray[numpy.float32]


def read_json(model: Any, name: str) -> dict[str, Any]:
    """Returns the contents of a model's small file, or an empty dict if there is none."""
    file: bytes | None = model._file(name)
    read: dict[str, Any] = {} if file is None else json.loads(file.decode("utf-8-sig"))
    return read


def config(model: TextModel) -> dict[str, Any]:
    return read_json(model, "config.json")


class _Bar:
    """Shows the progress of a call."""

    def __init__(self, op: str) -> None:
        try:
            tqdm: Any = import_module("tqdm.auto").tqdm
        except ImportError as error:
            help = "Install it with pip install tqdm, or leave progress out"
            message = f"{op}: progress is True, expected the package tqdm. {help}."
            raise UnsupportedError(message, {"op": op, "argument": "progress", "expected": "the package tqdm", "help": help}) from error
        self._make: Callable[[int], Any] = lambda total: tqdm(total=total, desc=op, unit=" texts")
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._make(total)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _encoder(op: str, prompt_names: tuple[str, ...] = ()) -> Callable[..., Floats]:
    """Returns an encode function. Its default prompt is the first of `prompt_names` that the model has."""

    def encode(
        model: TextModel,
        texts: str | Iterable[str],
        *,
        batch_size: int = 32,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        max_length: int | None = None,
        progress: Any = False,
    ) -> Floats:
        if truncate_dim is not None and (not hasattr(truncate_dim, "__index__") or truncate_dim < 1):
            fail(ConfigError, op, "truncate_dim", "a whole number of at least 1", repr(truncate_dim))
        if not isinstance(progress, bool):
            fail(ArgumentError, op, "progress", "True or False", type(progress).__name__)
        if prompt_names and prompt is None and prompt_name is None:
            known = model.prompts
            # sentence-transformers has empty prompts named query and document by default.
            prompt_name = next((name for name in prompt_names if known.get(name)), next((name for name in prompt_names if name in known), None))
        bar = _Bar(op) if progress else None
        try:
            vectors = model.embed(
                texts,
                batch_size=batch_size,
                prompt=prompt,
                prompt_name=prompt_name,
                normalize=normalize,
                max_length=max_length,
                on_progress=bar,
            )
        finally:
            if bar is not None:
                bar.close()
        if truncate_dim is not None and truncate_dim < vectors.shape[1]:
            vectors = numpy.ascontiguousarray(vectors[:, :truncate_dim])
            if normalize:
                vectors /= _norms(vectors)
        return vectors[0] if isinstance(texts, str) else vectors

    return encode


encode = _encoder("encode")
encode_query = _encoder("encode_query", ("query",))
encode_document = _encoder("encode_document", ("document", "passage", "corpus"))


def _norms(vectors: Floats) -> Floats:
    norms: Floats = numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return norms


def _rows(given: ArrayLike, name: str) -> Floats:
    array = numpy.asarray(given)
    if not numpy.can_cast(array.dtype, numpy.float32, "same_kind"):
        fail(DtypeError, "similarity", name, "real numbers", array.dtype.name)
    if array.ndim not in (1, 2):
        fail(ShapeError, "similarity", name, "(E) or (N,E)", f"an array of shape {array.shape}")
    return numpy.atleast_2d(array).astype(numpy.float32, copy=False)


def similarity(model: TextModel, a: ArrayLike, b: ArrayLike) -> Floats:
    one, other = _rows(a, "a"), _rows(b, "b")
    if one.shape[1] != other.shape[1]:
        fail(ShapeError, "similarity", "b", f"(M,{one.shape[1]}), the width of a", f"an array of shape {other.shape}")
    name = read_json(model, "config_sentence_transformers.json").get("similarity_fn_name") or "cosine"
    if name == "cosine":
        one, other = one / _norms(one), other / _norms(other)
    if name in ("cosine", "dot"):
        return one @ other.T
    if name not in ("euclidean", "manhattan"):
        fail(ConfigError, "similarity", "similarity_fn_name", "cosine, dot, euclidean or manhattan", str(name))
    order = 2 if name == "euclidean" else 1
    # By row, because memory for (N,M,E) could be large.
    return numpy.stack([-numpy.linalg.norm(other - row, ord=order, axis=1) for row in one]) if len(one) else numpy.zeros((0, len(other)), numpy.float32)
