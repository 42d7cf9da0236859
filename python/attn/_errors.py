"""The exceptions of attn, one class per code."""

import errno
from collections.abc import Callable
from typing import ClassVar, NoReturn

Detail = dict[str, str | float | list[str]]


def _set_errno(error: OSError, number: object) -> None:
    if isinstance(number, float):
        error.errno = int(number)


class AttnError(Exception):
    """Base class of all errors of attn. The message is `op: argument is X, expected Y`, and a remedy if there is one.

    >>> try:
    ...     attn.softmax(1j)
    ... except attn.AttnError as error:
    ...     print(error.code, error.detail["argument"], error.help)
    DTYPE x None
    """

    __module__ = "attn"
    code: ClassVar[str]
    """The kind of error: the same name as in the C++ library and the npm package."""
    detail: Detail
    """The facts of the message by name: op, argument, expected, got, help, and others that depend on the kind."""

    def __init__(self, message: str, detail: Detail | None = None) -> None:
        super().__init__(message)
        self.detail = detail or {}
        if isinstance(self, OSError):
            _set_errno(self, self.detail.get("errno"))

    @property
    def help(self) -> str | None:
        """The remedy or reason, without its final period; None if there is none."""
        remedy = self.detail.get("help")
        return remedy if isinstance(remedy, str) else None

    def __reduce__(self) -> tuple[Callable[..., "AttnError"], tuple[str, Detail]]:
        return type(self), (str(self), self.detail)


class ArgumentError(AttnError, TypeError, ValueError):
    """An argument is missing or of the wrong kind."""

    __module__ = "attn"
    code = "ARGUMENT"


class DtypeError(AttnError, TypeError):
    """An array holds elements of the wrong type."""

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
    """Values of options are unknown, out of range or exclude each other."""

    __module__ = "attn"
    code = "CONFIG"


class UnknownArgumentError(ArgumentError):
    """A function has no argument of this name."""

    __module__ = "attn"


class OutOfRangeError(AttnError, IndexError):
    """An index, id or length is outside its range."""

    __module__ = "attn"
    code = "OUT_OF_RANGE"


class FormatError(AttnError, ValueError):
    """A file is missing or cannot be read, or its bytes break the rules of its format."""

    __module__ = "attn"
    code = "FORMAT"


class MissingFileError(FormatError, FileNotFoundError):
    """A file or folder does not exist."""

    __module__ = "attn"


class UnwritableError(ArgumentError, OSError):
    """A file or folder cannot be written."""

    __module__ = "attn"


class MismatchError(AttnError, ValueError):
    """A state dictionary has missing, unexpected or mis-shaped names; `detail` lists all of them."""

    __module__ = "attn"
    code = "MISMATCH"


class UnsupportedError(AttnError, NotImplementedError):
    """The input is valid, but attn does not support it."""

    __module__ = "attn"
    code = "UNSUPPORTED"


class OutOfMemoryError(AttnError, MemoryError):
    """A call would need more memory than its limit."""

    __module__ = "attn"
    code = "MEMORY"


class BusyError(AttnError, RuntimeError):
    """A callback called the object whose call it belongs to, or fork() interrupted a change of the object."""

    __module__ = "attn"
    code = "BUSY"


_classes = {each.code: each for each in AttnError.__subclasses__()}


def make_error(code: str, message: str, detail: Detail) -> AttnError:
    """Called by the extension."""
    op = str(detail.get("op", ""))
    if "::" in op:  # TextModel::load, in C++
        detail["op"] = op.replace("::", ".")
        message = message.replace(op, op.replace("::", "."), 1)
    # errno: the file cannot be read (FORMAT) or written (ARGUMENT).
    if code == "FORMAT" and detail.get("errno") == errno.ENOENT:
        return MissingFileError(message, detail)
    if code == "ARGUMENT" and "errno" in detail:
        return UnwritableError(message, detail)
    return _classes[code](message, detail)


def error_of(kind: type[AttnError], op: str, argument: str, expected: str, got: str | int, help: str | None = None, number: int | None = None) -> AttnError:
    """Makes an error; number is the system's, for errors about files."""
    detail: Detail = {"op": op, "argument": argument, "expected": expected, "got": float(got) if isinstance(got, int) else got}
    if number is not None:
        detail["errno"] = float(number)
    message = f"{op}: {argument} is {got}, expected {expected}"
    if help is not None:
        detail["help"] = help
        message += f". {help}" + ("" if help.endswith("?") else ".")
    return kind(message, detail)


def fail(kind: type[AttnError], op: str, argument: str, expected: str, got: str | int, help: str | None = None) -> NoReturn:
    raise error_of(kind, op, argument, expected, got, help)
