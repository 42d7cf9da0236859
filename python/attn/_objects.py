"""Text, copies and pickles of the extension's objects."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _attn  # pyright: ignore[reportPrivateUsage]

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def _model_of(files: dict[str, bytes], weights: str, threads: int | None) -> _attn.TextModel:
    with tempfile.TemporaryDirectory(prefix="attn-") as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return _attn.TextModel.load(folder, weights=weights, threads=threads)  # type: ignore[arg-type]


def _reduce_model(self: Any) -> Reduced:
    with tempfile.TemporaryDirectory(prefix="attn-") as folder:
        self.save_pretrained(folder)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    return _model_of, (files, self.weights, self.threads)


def _layer_of(kind: type, arguments: dict[str, Any], state: dict[str, Any], is_quantized: bool, threads: int | None) -> Any:
    made = kind(**arguments)
    made.load_state_dict(state)
    if is_quantized:
        made.quantize()
    made.threads = threads
    return made


def _reduce_layer(self: Any) -> Reduced:
    return _layer_of, (self.__class__, self._arguments, self.state_dict(), self.is_quantized, self.threads)


def _mask_of(kind: str, mask: Any) -> _attn.Mask:
    made: _attn.Mask = getattr(_attn.Mask, kind)(mask)
    return made


def _reduce_mask(self: Any) -> Reduced:
    return _mask_of, (self._kind, self._array)


def _describe_model(self: Any) -> str:
    sizes = f"{self.num_layers} layers, {self.num_heads} heads, embeddings of {self.embedding_dimension}"
    return f"<attn.TextModel: {self.config['model_type']}, {self.task}, {sizes}, {self.weights}>"


def _describe_layer(self: Any) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
    return f"attn.{type(self).__name__}({given})" if not self.is_quantized else f"<attn.{type(self).__name__}({given}), int8>"


def _describe_mask(self: Any) -> str:
    return f"<attn.Mask: {self._kind}, {self._array.shape}>"


def _describe_tokenizer(self: Any) -> str:
    return f"<attn.Tokenizer: {self.vocabulary_size} tokens>"


def _describe_words(self: Any) -> str:
    return "<attn.WordEmbeddings>"


def _describe_cache(self: Any) -> str:
    return f"<attn.KeyValueCache: {self.length} of {self.max_length} tokens>"


def _describe_patch(self: Any) -> str:
    what = [f"{name} {shape}" for name, shape in self._shapes.items()]
    return f"<attn.LayerPatch: layer {self._layer}{''.join(', ' + each for each in what)}>"


def add_methods() -> None:
    """Adds __repr__ and __reduce__ to the classes of the extension."""
    methods: dict[Any, tuple[Callable[[Any], str], Callable[[Any], Reduced] | None]] = {
        _attn.TextModel: (_describe_model, _reduce_model),
        _attn.Mask: (_describe_mask, _reduce_mask),
        _attn.KeyValueCache: (_describe_cache, None),
        _attn.LayerPatch: (_describe_patch, None),
        _attn.Tokenizer: (_describe_tokenizer, None),
        _attn.WordEmbeddings: (_describe_words, None),
    }
    for layer in (_attn.Embedding, _attn.MultiHeadAttention, _attn.TransformerEncoderLayer, _attn.TransformerEncoder):
        methods[layer] = (_describe_layer, _reduce_layer)
    for kind, (describe, reduce) in methods.items():
        kind.__repr__ = describe
        if reduce is not None:
            kind.__reduce__ = reduce
