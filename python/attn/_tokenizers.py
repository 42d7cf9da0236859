"""Runs tokenizers that attn does not read natively with the package tokenizers, configured as by transformers."""

import json
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ._errors import OutOfRangeError, UnsupportedError, fail

if TYPE_CHECKING:
    import tokenizers

_INSTALL = "Install it with pip install tokenizers"

# By type: fields that tokenizer_config.json overrides, with its names.
_settings = {
    "BertNormalizer": {"lowercase": "do_lower_case", "strip_accents": "strip_accents", "handle_chinese_chars": "tokenize_chinese_chars"},
    "ByteLevel": {"add_prefix_space": "add_prefix_space"},
    "RobertaProcessing": {"add_prefix_space": "add_prefix_space"},
}
# Fields that tokenizer_config.json omits.
_defaults = {"BertNormalizer": {"lowercase": True, "strip_accents": None, "handle_chinese_chars": True}}
# These do not override tokenizer.json.
_generic = ("PreTrainedTokenizerFast", "TokenizersBackend")

# Truncation is set on the library's object, so one thread at a time encodes. fork() waits, so that no child inherits a
# held lock.
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Row(NamedTuple):
    """An encoded text or pair of texts."""

    ids: list[int]
    type_ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int] | None]
    sequence_ids: list[int | None]
    truncated: bool


class Padding(NamedTuple):
    """The padding token."""

    id: int
    type_id: int
    token: str


class Tokenizer:
    def __init__(self, tokenizer_json: bytes, tokenizer_config: bytes | None, default_class: str) -> None:
        self._files = (tokenizer_json, tokenizer_config, default_class)
        self._made: tuple[tokenizers.Tokenizer, Padding] | None = None
        self._truncation_side: str = json.loads(tokenizer_config or b"{}").get("truncation_side") or "right"

    def encode(
        self, first: str, second: str | None, max_length: int | None, truncation: bool, add_special_tokens: bool, truncation_side: str | None
    ) -> Row:
        tokenizer = self._tokenizer
        with _lock:
            tokenizer.no_truncation()
            if truncation and max_length is not None:
                if add_special_tokens:
                    self._check_room(tokenizer, second is not None, max_length)
                cast(Any, tokenizer).enable_truncation(max_length, direction=truncation_side or self._truncation_side)
            encoding = tokenizer.encode(first, second, add_special_tokens=add_special_tokens)
        if max_length is not None and len(encoding.ids) > max_length:
            fail(OutOfRangeError, "tokenize", "the text", f"at most {max_length}", f"{len(encoding.ids)} tokens long")
        added = [sequence is None for sequence in encoding.sequence_ids]
        return Row(
            encoding.ids,
            encoding.type_ids,
            encoding.tokens,
            [None if is_added else offsets for is_added, offsets in zip(added, encoding.offsets, strict=True)],
            encoding.sequence_ids,
            bool(encoding.overflowing),
        )

    def token_to_id(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        return self._tokenizer.id_to_token(id) if 0 <= id < 2**32 else None

    def padding(self) -> Padding:
        return self._parts[1]

    @staticmethod
    def _check_room(tokenizer: "tokenizers.Tokenizer", is_pair: bool, max_length: int) -> None:
        added = tokenizer.num_special_tokens_to_add(is_pair)
        if max_length < added:
            fail(OutOfRangeError, "tokenize", "max_length", f"at least {added}, the number of special tokens", max_length)

    @property
    def _tokenizer(self) -> "tokenizers.Tokenizer":
        return self._parts[0]

    @property
    def _parts(self) -> "tuple[tokenizers.Tokenizer, Padding]":
        with _lock:
            if self._made is None:
                self._made = _make(*self._files)
            return self._made


def _make(tokenizer_json: bytes, tokenizer_config: bytes | None, default_class: str) -> "tuple[tokenizers.Tokenizer, Padding]":
    try:
        import tokenizers
    except ImportError as error:
        raise UnsupportedError(
            f"tokenize: tokenizer.json has a part that attn does not read itself, expected the package tokenizers. {_INSTALL}.",
            {"op": "tokenize", "argument": "tokenizer.json", "expected": "the package tokenizers", "help": _INSTALL},
        ) from error
    file = json.loads(tokenizer_json)
    config = json.loads(tokenizer_config or b"{}")
    for side, known in (("truncation_side", ("left", "right")), ("padding_side", ("right",))):
        if config.get(side, "right") not in known:
            fail(UnsupportedError, "tokenizer_config.json", side, " or ".join(known), str(config[side]))
    if config.get("tokenizer_class") not in _generic:
        is_made_for_models = bool(config.get("tokenizer_class") or default_class)
        for name in ("normalizer", "pre_tokenizer", "post_processor"):
            if file.get(name) is not None:
                _override(file[name], config, is_made_for_models)
    padding: dict[str, Any] = file.get("padding") or {}
    file["truncation"] = file["padding"] = None
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(file))
    tokenizer.encode_special_tokens = bool(config.get("split_special_tokens"))
    return tokenizer, _padding_of(tokenizer, padding, config)


def _padding_of(tokenizer: "tokenizers.Tokenizer", padding: dict[str, Any], config: dict[str, Any]) -> Padding:
    given: Any = config.get("pad_token", padding.get("pad_token"))
    token: str | None = cast("dict[str, str]", given)["content"] if isinstance(given, dict) else given
    for each in (token, "[PAD]", "<pad>"):
        id = None if each is None else tokenizer.token_to_id(each)
        if each is not None and id is not None:
            return Padding(id, padding.get("pad_type_id", 0), each)
    return Padding(0, padding.get("pad_type_id", 0), token or "[PAD]")


def _override(part: dict[str, Any], config: dict[str, Any], is_made_for_models: bool) -> None:
    if is_made_for_models:
        part.update(_defaults.get(part["type"], {}))
    for own, name in _settings.get(part["type"], {}).items():
        if name in config:
            part[own] = config[name]
