"""Attention maps for notebooks, drawn by the npm package's element <attention-map>."""

import json
import math
import operator
import os
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from numbers import Real
from pathlib import Path
from typing import Any, Literal, cast, overload

import numpy
from numpy.typing import ArrayLike, NDArray

from ._attn import TextModel
from ._calls import checked
from ._errors import ArgumentError, ConfigError, DtypeError, OutOfRangeError, ShapeError, UnwritableError, error_of, fail

# Rows or columns.
_LARGEST_TABLE = 32


_NO_SCRIPT = "<p>This build of attn has no map, only a table, because Node was missing.</p>"


class _Drawn:
    """What notebooks draw, and its page."""

    caption: str
    """Text above the picture."""

    def _repr_html_(self) -> str:
        raise NotImplementedError

    @checked
    def save(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Writes the picture as an HTML page that needs no other file.

        Raises UnwritableError if the file cannot be written, ArgumentError if path is not a path.
        """
        op = f"{type(self).__name__}.save"
        given: Any = path
        if not hasattr(given, "__fspath__") and not isinstance(given, str | bytes):
            fail(ArgumentError, op, "path", "a str, bytes or os.PathLike", type(given).__name__)
        style = "body { font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark; margin: 1em }"
        page = (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(self.caption or 'Attention')}</title>"
            f"<style>{style}</style><body>{self._repr_html_()}</html>"
        )
        try:
            Path(os.fsdecode(path)).expanduser().write_text(page, encoding="utf-8")
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else None
            raise error_of(UnwritableError, op, "path", "a file that can be written", f"unwritable ({error})", number=number) from None


class AttentionView(_Drawn):
    """An attention map. Jupyter and similar notebooks draw it if it is the last line of a cell."""

    weights: NDArray[numpy.float32]
    """(L,S)."""
    tokens: list[str]
    """Labels of the rows, the queries."""
    keys: list[str]
    """Labels of the columns, the keys."""
    scale: Literal["head", "row"]
    """Whether the brightest colour is that of the largest weight of the map or of each row."""
    threshold: float
    """Weights below it are not drawn."""

    def __init__(
        self,
        weights: NDArray[numpy.float32],
        tokens: list[str],
        keys: list[str],
        caption: str,
        scale: Literal["head", "row"],
        threshold: float,
    ) -> None:
        self.weights, self.tokens, self.keys = weights, tokens, keys
        self.caption, self.scale, self.threshold = caption, scale, threshold

    def __repr__(self) -> str:
        return f"<attn.AttentionView: {len(self.tokens)} × {len(self.keys)} weights{f', {self.caption}' if self.caption else ''}>"

    def _repr_html_(self) -> str:
        code = script()
        if code is None:
            return _table(self) + _NO_SCRIPT
        # Untrusted notebooks and code hosts run no scripts and show the table.
        return f"{_element(self, _table(self))}<script>{code}</script>"


def _element(view: AttentionView, otherwise: str) -> str:
    attributes = {
        "tokens": json.dumps(view.tokens),
        "weights": "[" + ",".join("[" + ",".join(f"{weight:.4g}" for weight in row) + "]" for row in view.weights.tolist()) + "]",
        "caption": view.caption,
        "scale": view.scale,
        "threshold": str(view.threshold),
    }
    if view.keys != view.tokens:
        attributes["keys"] = json.dumps(view.keys)
    given = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<attention-map {given}>{otherwise}</attention-map>"


def _table(view: AttentionView) -> str:
    caption = f"<caption>{escape(view.caption)}</caption>" if view.caption else ""
    if max(len(view.tokens), len(view.keys)) > _LARGEST_TABLE:
        return f"<p>{escape(view.caption)} {len(view.tokens)} × {len(view.keys)} weights: run scripts to see them.</p>"
    most = max(float(view.weights.max(initial=0)), 1e-30)
    head = "".join(f"<th>{escape(key)}</th>" for key in view.keys)
    rows = "".join(
        f"<tr><th>{escape(token)}</th>"
        + "".join(f'<td style="background-color: rgba(33, 145, 140, {weight / most:.2f})">{weight:.2f}</td>' for weight in row)
        + "</tr>"
        for token, row in zip(view.tokens, view.weights.tolist(), strict=True)
    )
    return f"<table>{caption}<tr><th></th>{head}</tr>{rows}</table>"


class AttentionGrid(_Drawn):
    """Attention maps of several heads. Jupyter and similar notebooks draw it if it is the last line of a cell."""

    views: list[list[AttentionView]]
    """The maps, by layer and head."""

    def __init__(self, views: list[list[AttentionView]], caption: str) -> None:
        self.views, self.caption = views, caption

    def __repr__(self) -> str:
        rows, columns = len(self.views), len(self.views[0])
        first = self.views[0][0]
        return f"<attn.AttentionGrid: {rows} × {columns} maps of {len(first.tokens)} × {len(first.keys)} weights>"

    def _repr_html_(self) -> str:
        code, caption = script(), f"<p>{escape(self.caption)}</p>" if self.caption else ""
        maps = [view for row in self.views for view in row]
        if code is None:
            return caption + "".join(_table(view) for view in maps) + _NO_SCRIPT
        # Tables of all heads would be much larger.
        elements = "".join(_element(view, f"<p>{escape(view.caption)}: run scripts to see it.</p>") for view in maps)
        style = f"display: grid; overflow-x: auto; gap: 1em; grid-template-columns: repeat({len(self.views[0])}, minmax(12em, 1fr))"
        return f'{caption}<div style="{style}">{elements}</div><script>{code}</script>'


@overload
def show(
    what: TextModel,
    text: str | tuple[str, str],
    /,
    *,
    layer: int | Literal["all"] = -1,
    head: Literal["all"],
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionGrid: ...


@overload
def show(
    what: TextModel,
    text: str | tuple[str, str],
    /,
    *,
    layer: Literal["all"],
    head: int | None = None,
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionGrid: ...


@overload
def show(
    what: TextModel,
    text: str | tuple[str, str],
    /,
    *,
    layer: int = -1,
    head: int | None = None,
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionView: ...


@overload
def show(
    what: ArrayLike,
    tokens: Sequence[str],
    /,
    *,
    keys: Sequence[str] | None = None,
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionView: ...


@checked
def show(
    what: TextModel | ArrayLike,
    text: str | Sequence[str],
    /,
    *,
    layer: int | Literal["all"] = -1,
    head: int | Literal["all"] | None = None,
    keys: Sequence[str] | None = None,
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionView | AttentionGrid:
    """Draws the attention of a model on a text, or given weights, as a map for notebooks. The map needs no network.

    show(model, text): the weights of one layer and head. show(weights, tokens): an array (L,S) with labels for its rows.

    model: a TextModel. text: a text, or a pair of texts (a tuple or list of two), which the model reads as one input.
    layer: counted from 0; negative numbers count from the end. head: counted from 0; None for the mean of all heads.
    'all' as layer or head draws a map for each of them.
    weights: (L,S); leading dimensions of 1 are ignored. tokens: L labels of the rows. keys: S labels of the columns, default tokens.
    caption: a text above the map; default the layer and head.
    scale: the brightest colour is that of the largest weight of the map ('head') or of each row ('row').
    threshold: weights below it are not drawn.

    Returns an AttentionView, with 'all' an AttentionGrid. Raises ShapeError unless weights are (L,S) with L tokens and S keys, DtypeError unless
    they are real numbers, ArgumentError for NaN or infinite weights and labels that are not texts, ConfigError for another scale, OutOfRangeError for a layer or head that does not exist, and the errors of
    TextModel.tokenize().

    >>> model = attn.TextModel.load("testdata/models/sentiment")
    >>> attn.show(model, "not bad at all", layer=1, head=2)
    <attn.AttentionView: 6 × 6 weights, layer 1, head 2>
    >>> attn.show(model, "not bad at all", layer="all", head="all")
    <attn.AttentionGrid: 2 × 4 maps of 6 × 6 weights>
    """
    check_drawing("show", caption, scale, threshold)
    if isinstance(what, TextModel):
        if keys is not None:
            fail(ArgumentError, "show", "keys", "no keys with a model, whose tokens label rows and columns", "given")
        attentions, tokens = attentions_of(what, text)
        layers = places("show", "layer", layer, len(attentions))
        heads = [None] if head is None else places("show", "head", head, attentions[0].shape[1])

        def view(at: int, of: int | None, title: str | None) -> AttentionView:
            return view_of(attentions, tokens, at, of, title, scale, threshold)

        if layer == "all" or head == "all":
            return AttentionGrid([[view(at, of, None) for of in heads] for at in layers], caption or "")
        return view(layers[0], heads[0], caption)
    weights = _matrix(what)
    rows = _labels("tokens", text)
    columns = rows if keys is None else _labels("keys", keys)
    if weights.shape != (len(rows), len(columns)):
        expected = f"shape {(len(rows), len(columns))}, the numbers of tokens and keys"
        help = "Choose a text and a head, for example attentions[layer][0, head]" if weights.ndim > 2 else None
        fail(ShapeError, "show", "weights", expected, f"an array of shape {weights.shape}", help)
    return AttentionView(weights, rows, columns, caption or "", scale, threshold)


def attentions_of(model: TextModel, text: Any) -> tuple[list[NDArray[numpy.float32]], list[str]]:
    is_list = isinstance(text, tuple | list)
    texts = list(cast("Sequence[Any]", text)) if is_list else []
    is_pair = len(texts) == 2 and all(isinstance(each, str) for each in texts)
    if not isinstance(text, str) and not is_pair:
        kind = cast(object, text).__class__.__name__
        got = f"a {kind} of {len(texts)}" if is_list else kind
        fail(ArgumentError, "show", "text", "a text, or a pair of texts", got, "Call show() once for each text")
    encoding = model.tokenize(text if isinstance(text, str) else [(texts[0], texts[1])])
    attentions = model(encoding, output_attentions=True).attentions
    assert attentions is not None
    return attentions, encoding.tokens[0]


def view_of(
    attentions: list[NDArray[numpy.float32]],
    tokens: list[str],
    layer: int,
    head: int | None,
    caption: str | None,
    scale: Literal["head", "row"],
    threshold: float,
) -> AttentionView:
    heads = attentions[layer][0]
    weights, name = (heads.mean(axis=0), f"mean of {len(heads)} heads") if head is None else (heads[head], f"head {head}")
    return AttentionView(weights, tokens, tokens, f"layer {layer}, {name}" if caption is None else caption, scale, threshold)


def places(op: str, name: str, place: int | str, count: int) -> list[int]:
    if isinstance(place, str):
        if place == "all":
            return list(range(count))
        fail(ConfigError, op, name, "a whole number or 'all'", repr(place))
    try:
        at = operator.index(place)
    except TypeError:
        fail(ArgumentError, op, name, "a whole number or 'all'", type(place).__name__)
    if -count <= at < count:
        return [at % count]
    fail(OutOfRangeError, op, name, f"a number from {-count} to {count - 1}", at)


def check_drawing(op: str, caption: Any, scale: Any, threshold: Any) -> None:
    if caption is not None and not isinstance(caption, str):
        fail(ArgumentError, op, "caption", "a text", type(caption).__name__)
    if not isinstance(scale, str) or scale not in ("head", "row"):
        fail(ConfigError, op, "scale", "'head' or 'row'", repr(scale))
    if not isinstance(threshold, Real) or not math.isfinite(threshold):
        fail(ArgumentError, op, "threshold", "a finite number", repr(threshold))


def _labels(name: str, given: Any) -> list[str]:
    try:
        labels: list[Any] = list(given)
    except TypeError:
        fail(ArgumentError, "show", name, "a list of texts", type(given).__name__)
    for i, label in enumerate(labels):
        if not isinstance(label, str):
            fail(ArgumentError, "show", f"{name}[{i}]", "a text", type(label).__name__, "An Encoding has the texts of its ids in tokens")
    return labels


def _matrix(given: Any) -> NDArray[numpy.float32]:
    if given is None or isinstance(given, str):
        fail(ArgumentError, "show", "the first argument", "a TextModel or weights (L,S)", type(given).__name__)
    try:
        array = numpy.asarray(given)
    except ValueError:
        fail(ShapeError, "show", "weights", "rows of equal lengths", "a list with rows of different lengths")
    if not numpy.can_cast(array.dtype, numpy.float32, "same_kind"):
        fail(DtypeError, "show", "weights", "real numbers", array.dtype.name)
    if numpy.ma.is_masked(given):
        fail(
            ArgumentError, "show", "weights", "an array without masked entries", "a masked array", "Replace masked entries first, for example with filled(0)"
        )
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if not numpy.isfinite(array).all():
        fail(ArgumentError, "show", "weights", "finite numbers", "an array with NaN or infinity")
    return array.astype(numpy.float32)


def script() -> str | None:
    file = files("attn") / "attention_map.js"
    return file.read_text(encoding="utf-8") if file.is_file() else None
