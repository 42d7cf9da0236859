"""Maps of attention for notebooks: the element <attention-map> of the npm package, with all that it needs."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Literal, overload

import numpy
from numpy.typing import ArrayLike, NDArray

from ._attn import TextModel
from ._errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError

# Where no script runs there is a table, up to so many rows and columns.
_MOST_OF_TABLE = 32


class AttentionView:
    """A map of attention weights, which Jupyter and its kin show as one."""

    weights: NDArray[numpy.float32]
    """(L,S)."""
    tokens: list[str]
    """Of the rows: what looks."""
    keys: list[str]
    """Of the columns: what is looked at."""

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
            return f"{self._table()}<p>attn was built where Node was not: there is no map, only its table.</p>"
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
        # What is inside is seen where the notebook is not trusted, or only read: there scripts do not run.
        return f"<attention-map {given}>{self._table()}</attention-map><script>{script}</script>"

    def save(self, path: str | Path) -> None:
        """Writes it as a page of its own, which needs nothing else."""
        style = "body { font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark; margin: 1em }"
        Path(path).write_text(
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(self._caption or 'Attention')}</title>"
            f"<style>{style}</style><body>{self._repr_html_()}</html>",
            encoding="utf-8",
        )

    def _table(self) -> str:
        caption = f"<caption>{escape(self._caption)}</caption>" if self._caption else ""
        if max(len(self.tokens), len(self.keys)) > _MOST_OF_TABLE:
            return f"<p>{escape(self._caption)} {len(self.tokens)} × {len(self.keys)} weights, which a script draws.</p>"
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
    """A map of the attention of a model in a text, or of weights (L,S) between tokens, as an object that a notebook shows.

    Of a model: that of `layer`, the last by default, in `head`, counted from 0; None: the mean of all heads.
    Of weights: dimensions of 1 in front do not count; rows are `tokens`, columns `keys`, by default the same.
    scale: what the brightest colour stands for, the largest weight of the whole ('head') or of each row. threshold: smaller
    weights are not drawn. It needs no network; where scripts do not run there is a table.

    Raises ShapeError, DtypeError, ArgumentError for weights that are NaN or infinite, OutOfRangeError; and as TextModel.tokenize.
    """
    if isinstance(what, TextModel):
        weights, tokens, caption = _of_model(what, text, layer, head, caption)
        return AttentionView(weights, tokens, tokens, caption, scale, threshold)
    weights = _matrix(what)
    rows = list(text)
    columns = rows if keys is None else list(keys)
    if weights.shape != (len(rows), len(columns)):
        raise ShapeError(
            f"show: weights has shape {weights.shape}, expected ({len(rows)}, {len(columns)}) as there are tokens",
            {"op": "show", "argument": "weights", "expected": str((len(rows), len(columns))), "got": str(weights.shape)},
        )
    return AttentionView(weights, rows, columns, caption or "", scale, threshold)


def _of_model(
    model: TextModel, text: str | Sequence[str], layer: int, head: int | None, caption: str | None
) -> tuple[NDArray[numpy.float32], list[str], str]:
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
    expected = f"from {-count} to {count - 1}"
    raise OutOfRangeError(
        f"show: {name} is {place}, expected {expected}", {"op": "show", "argument": name, "expected": expected, "got": float(place)}
    )


def _matrix(given: ArrayLike) -> NDArray[numpy.float32]:
    array = numpy.asarray(given)
    if not numpy.can_cast(array.dtype, numpy.float32, "same_kind"):
        raise DtypeError(
            f"show: weights is {array.dtype.name}, expected real numbers",
            {"op": "show", "argument": "weights", "expected": "real numbers", "got": array.dtype.name},
        )
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if not numpy.isfinite(array).all():
        raise ArgumentError("show: weights is NaN or infinite somewhere, expected finite numbers", {"op": "show", "argument": "weights"})
    return array.astype(numpy.float32)


def _script() -> str | None:
    file = files("attn") / "attention_map.js"
    return file.read_text(encoding="utf-8") if file.is_file() else None
