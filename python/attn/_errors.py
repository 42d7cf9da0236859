"""The exceptions of attn, one class for each code."""

from typing import ClassVar


class AttnError(Exception):
    """What every call of attn raises where it refuses. The message says op, argument, what was expected and what it got."""

    __module__ = "attn"
    code: ClassVar[str]
    """The kind of error, by the name that the C++ library and the npm package have for it."""
    detail: dict[str, str | float | list[str]]
    """The facts of the message by name: op, argument, expected, got and what the kind has besides."""

    def __init__(self, message: str, detail: dict[str, str | float | list[str]] | None = None) -> None:
        super().__init__(message)
        self.detail = detail or {}

    def __reduce__(self) -> tuple[type["AttnError"], tuple[str, dict[str, str | float | list[str]]]]:
        return type(self), (str(self), self.detail)


class ArgumentError(AttnError, ValueError):
    """An argument is missing or not of its kind."""

    __module__ = "attn"
    code = "ARGUMENT"


class DtypeError(AttnError, TypeError):
    """An array holds something else than the numbers that are asked for."""

    __module__ = "attn"
    code = "DTYPE"


class ShapeError(AttnError, ValueError):
    """Ranks, widths, lengths or batches disagree."""

    __module__ = "attn"
    code = "SHAPE"


class MaskError(AttnError, ValueError):
    """A mask has wrong dimensions or values."""

    __module__ = "attn"
    code = "MASK"


class ConfigError(AttnError, ValueError):
    """Options that cannot work together or are out of their range."""

    __module__ = "attn"
    code = "CONFIG"


class OutOfRangeError(AttnError, IndexError):
    """An index or id is outside its table."""

    __module__ = "attn"
    code = "OUT_OF_RANGE"


class FormatError(AttnError, ValueError):
    """Bytes are not what they should be, or a file is not there."""

    __module__ = "attn"
    code = "FORMAT"


class MismatchError(AttnError, ValueError):
    """A state dictionary has missing, extra or mis-shaped names: `detail` lists all of them."""

    __module__ = "attn"
    code = "MISMATCH"


class UnsupportedError(AttnError, NotImplementedError):
    """Valid, but not something attn does."""

    __module__ = "attn"
    code = "UNSUPPORTED"


class OutOfMemoryError(AttnError, MemoryError):
    """A call would need more memory than it may ask for."""

    __module__ = "attn"
    code = "MEMORY"


class BusyError(AttnError, RuntimeError):
    """Called from inside what has to end first."""

    __module__ = "attn"
    code = "BUSY"


_classes = {each.code: each for each in AttnError.__subclasses__()}


def make_error(code: str, message: str, detail: dict[str, str | float | list[str]]) -> AttnError:
    return _classes[code](message, detail)
