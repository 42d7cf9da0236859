"""Text, copies and pickles of the extension's objects."""

import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _attn  # pyright: ignore[reportPrivateUsage]
from ._errors import UnsupportedError, error_of

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


@contextmanager
def _folder_of(files: dict[str, bytes]) -> Generator[str, None, None]:
    with tempfile.TemporaryDirectory(prefix="attn-") as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield folder


def _model_of(files: dict[str, bytes], weights: str, threads: int | None, kind: Any = _attn.TextModel) -> Any:
    with _folder_of(files) as folder:
        return kind.load(folder, weights=weights, threads=threads)


def _reduce_model(self: Any) -> Reduced:
    with tempfile.TemporaryDirectory(prefix="attn-") as folder:
        self.save_pretrained(folder)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    return _model_of, (files, self.weights, self.threads, self.__class__)


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


def _patch_of(layer: int, values: dict[str, Any]) -> _attn.LayerPatch:
    return _attn.LayerPatch(layer, **values)


def _reduce_patch(self: Any) -> Reduced:
    return _patch_of, (self._layer, self._values)


def _tokenizer_of(files: dict[str, bytes]) -> _attn.Tokenizer:
    with _folder_of(files) as folder:
        return _attn.Tokenizer.from_pretrained(folder)


def _reduce_tokenizer(self: Any) -> Reduced:
    return _tokenizer_of, (self._files,)


def _words_of(model: _attn.TextModel) -> _attn.WordEmbeddings:
    return model.word_embeddings


def _reduce_words(self: Any) -> Reduced:
    return _words_of, (self._model,)


def _reduce_cache(self: Any) -> Reduced:
    help = "Create one with create_cache() of the model in the other process, and give it the tokens again"
    raise error_of(UnsupportedError, "KeyValueCache", "the cache", "an object that can be copied", "tied to its model", help)


def _describe_model(self: Any) -> str:
    sizes = f"{self.num_layers} layers, {self.num_heads} heads, embeddings of {self.embedding_dimension}"
    return f"<attn.TextModel: {self.config['model_type']}, {self.task}, {sizes}, {self.weights}>"


def _describe_image_model(self: Any) -> str:
    return f"<attn.ImageModel: {self.task}, {self.num_layers} layers, {self.num_heads} heads, {self.weights}>"


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
    what = [f"{name} {value.shape}" for name, value in self._values.items() if value is not None]
    return f"<attn.LayerPatch: layer {self._layer}{''.join(', ' + each for each in what)}>"


def add_methods() -> None:
    """Adds __repr__ and __reduce__ to the classes of the extension."""
    methods: dict[Any, tuple[Callable[[Any], str], Callable[[Any], Reduced]]] = {
        _attn.TextModel: (_describe_model, _reduce_model),
        _attn.ImageModel: (_describe_image_model, _reduce_model),
        _attn.Mask: (_describe_mask, _reduce_mask),
        _attn.KeyValueCache: (_describe_cache, _reduce_cache),
        _attn.LayerPatch: (_describe_patch, _reduce_patch),
        _attn.Tokenizer: (_describe_tokenizer, _reduce_tokenizer),
        _attn.WordEmbeddings: (_describe_words, _reduce_words),
    }
    for layer in (_attn.Embedding, _attn.MultiHeadAttention, _attn.TransformerEncoderLayer, _attn.TransformerEncoder):
        methods[layer] = (_describe_layer, _reduce_layer)
    for kind, (describe, reduce) in methods.items():
        kind.__repr__, kind.__reduce__ = describe, reduce
