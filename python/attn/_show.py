"""Attention maps for notebooks, drawn by the npm package's element <attention-map>."""

import json
import os
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Literal, overload

import numpy
from numpy.typing import ArrayLike, NDArray

from ._attn import TextModel
from ._calls import checked
from ._errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError, UnwritableError, error_of, fail

# Largest number of rows or columns of the table that is shown if scripts do not run.
_LARGEST_TABLE = 32


class AttentionView:
    """An attention map. Jupyter and similar notebooks draw it if it is the last line of a cell."""

    weights: NDArray[numpy.float32]
    """(L,S)."""
    tokens: list[str]
    """Labels of the rows, the queries."""
    keys: list[str]
    """Labels of the columns, the keys."""

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
        self._caption, self._scale, self._threshold = caption, scale, threshold

    def __repr__(self) -> str:
        return f"<attn.AttentionView: {len(self.tokens)} × {len(self.keys)} weights{f', {self._caption}' if self._caption else ''}>"

    def _repr_html_(self) -> str:
        script = _script()
        if script is None:
            return f"{self._table()}<p>This build of attn has no map, only a table, because Node was missing.</p>"
        attributes = {
            "tokens": json.dumps(self.tokens),
            "weights": "[" + ",".join("[" + ",".join(f"{weight:.4g}" for weight in row) + "]" for row in self.weights.tolist()) + "]",
            "caption": self._caption,
            "scale": self._scale,
            "threshold": str(self._threshold),
        }
        if self.keys != self.tokens:
            attributes["keys"] = json.dumps(self.keys)
        given = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
        # Untrusted notebooks and code hosts do not run scripts and show the table inside the element.
        return f"<attention-map {given}>{self._table()}</attention-map><script>{script}</script>"

    @checked
    def save(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Writes the map as an HTML page that needs no other file. Raises UnwritableError."""
        op = "AttentionView.save"
        if not isinstance(path, str | bytes | os.PathLike):
            fail(ArgumentError, op, "path", "a str, bytes or os.PathLike", type(path).__name__)
        style = "body { font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark; margin: 1em }"
        page = (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(self._caption or 'Attention')}</title>"
            f"<style>{style}</style><body>{self._repr_html_()}</html>"
        )
        try:
            Path(os.fsdecode(path)).expanduser().write_text(page, encoding="utf-8")
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else None
            raise error_of(UnwritableError, op, "path", "a file that can be written", f"unwritable ({error})", number=number) from None

    def _table(self) -> str:
        caption = f"<caption>{escape(self._caption)}</caption>" if self._caption else ""
        if max(len(self.tokens), len(self.keys)) > _LARGEST_TABLE:
            return f"<p>{escape(self._caption)} {len(self.tokens)} × {len(self.keys)} weights: run scripts to see them.</p>"
        most = max(float(self.weights.max(initial=0)), 1e-30)
        head = "".join(f"<th>{escape(key)}</th>" for key in self.keys)
        rows = "".join(
            f"<tr><th>{escape(token)}</th>"
            + "".join(f'<td style="background-color: rgba(33, 145, 140, {weight / most:.2f})">{weight:.2f}</td>' for weight in row)
            + "</tr>"
            for token, row in zip(self.tokens, self.weights.tolist(), strict=True)
        )
        return f"<table>{caption}<tr><th></th>{head}</tr>{rows}</table>"


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
    layer: int = -1,
    head: int | None = None,
    keys: Sequence[str] | None = None,
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionView:
    """Draws the attention of a model on a text, or given weights, as a map for notebooks. The map needs no network.

    show(model, text): the weights of one layer and head. show(weights, tokens): an array (L,S) with labels for its rows.

    model: a TextModel. text: a text, or a pair of texts.
    layer: counted from 0; negative numbers count from the end. head: counted from 0; None for the mean of all heads.
    weights: (L,S); leading dimensions of 1 are ignored. tokens: L labels of the rows. keys: S labels of the columns, default tokens.
    caption: a text above the map; default the layer and head.
    scale: 'head' or 'row', the set of weights whose largest gets the brightest colour.
    threshold: weights below it are not drawn.

    Returns an AttentionView. Raises ShapeError, DtypeError, ArgumentError for NaN or infinite weights, OutOfRangeError for a layer or head
    that does not exist, and the errors of TextModel.tokenize().

    >>> model = attn.TextModel.load("testdata/models/sentiment")
    >>> attn.show(model, "not bad at all", layer=1, head=2)
    <attn.AttentionView: 6 × 6 weights, layer 1, head 2>
    """
    if isinstance(what, TextModel):
        weights, tokens, caption = _of_model(what, text, layer, head, caption)
        return AttentionView(weights, tokens, tokens, caption, scale, threshold)
    weights = _matrix(what)
    rows = list(text)
    columns = rows if keys is None else list(keys)
    if weights.shape != (len(rows), len(columns)):
        expected = f"shape {(len(rows), len(columns))}, the numbers of tokens and keys"
        fail(ShapeError, "show", "weights", expected, f"an array of shape {weights.shape}")
    return AttentionView(weights, rows, columns, caption or "", scale, threshold)


def _of_model(
    model: TextModel, text: str | Sequence[str], layer: int, head: int | None, caption: str | None
) -> tuple[NDArray[numpy.float32], list[str], str]:
    is_pair = isinstance(text, tuple | list) and len(text) == 2 and all(isinstance(each, str) for each in text)
    if not isinstance(text, str) and not is_pair:
        got = f"a {type(text).__name__} of {len(text)}" if isinstance(text, tuple | list) else type(text).__name__
        fail(ArgumentError, "show", "text", "a text, or a pair of texts", got, "Call show() once for each text")
    encoding = model.tokenize(text if isinstance(text, str) else [(text[0], text[1])])
    attentions = model(encoding, output_attentions=True).attentions
    assert attentions is not None
    layer = _place("layer", layer, len(attentions))
    heads = attentions[layer][0]
    if head is None:
        return heads.mean(axis=0), encoding.tokens[0], f"layer {layer}, mean of {len(heads)} heads" if caption is None else caption
    head = _place("head", head, len(heads))
    return heads[head], encoding.tokens[0], f"layer {layer}, head {head}" if caption is None else caption


def _place(name: str, place: int, count: int) -> int:
    if -count <= place < count:
        return place % count
    fail(OutOfRangeError, "show", name, f"a number from {-count} to {count - 1}", place)


def _matrix(given: ArrayLike) -> NDArray[numpy.float32]:
    array = numpy.asarray(given)
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


def _script() -> str | None:
    file = files("attn") / "attention_map.js"
    return file.read_text(encoding="utf-8") if file.is_file() else None
