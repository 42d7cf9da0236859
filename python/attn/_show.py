"""Attention maps for notebooks, drawn by the npm package's elements <attention-map> and <attention-image>."""

import json
import math
import operator
import os
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from numbers import Real
from pathlib import Path
from typing import Any, Literal, cast, overload

import numpy
from numpy.typing import ArrayLike, NDArray

from ._attn import ImageModel, TextModel
from ._calls import checked
from ._errors import ArgumentError, ConfigError, DtypeError, OutOfRangeError, ShapeError, UnwritableError, error_of, fail
from ._pictures import pixels_of, png, reduced
from ._results import ImageCrop

# Rows or columns.
_LARGEST_TABLE = 32
_MOST_TOKENS = 300


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
        return f"<attn.AttentionView: {_size(self)}{f', {self.caption}' if self.caption else ''}>"

    def _repr_html_(self) -> str:
        return _with_script(self)


def _json(weights: NDArray[numpy.float32]) -> str:
    return "[" + ",".join("[" + ",".join(f"{weight:.4g}" for weight in row) + "]" for row in weights.tolist()) + "]"


def _map_element(view: AttentionView, otherwise: str) -> str:
    attributes = {
        "tokens": json.dumps(view.tokens),
        "weights": _json(view.weights),
        "caption": view.caption,
        "scale": view.scale,
        "threshold": str(view.threshold),
    }
    if view.keys != view.tokens:
        attributes["keys"] = json.dumps(view.keys)
    given = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<attention-map {given}>{otherwise}</attention-map>"


def _map_table(view: AttentionView) -> str:
    caption = f"<caption>{escape(view.caption)}</caption>" if view.caption else ""
    if max(len(view.tokens), len(view.keys)) > _LARGEST_TABLE:
        return f"<p>{escape(view.caption)} {len(view.tokens)} × {len(view.keys)} weights: run scripts to see them.</p>"
    head = "".join(f"<th>{escape(key)}</th>" for key in view.keys)
    return _cells(view.weights, f"{caption}<tr><th></th>{head}</tr>", [f"<th>{escape(token)}</th>" for token in view.tokens])


def _cells(weights: NDArray[numpy.float32], head: str, labels: Sequence[str] | None = None, digits: str = "2f") -> str:
    most = max(float(weights.max(initial=0)), 1e-30)
    rows = "".join(
        f"<tr>{label}"
        + "".join(f'<td style="background-color: rgba(33, 145, 140, {weight / most:.2f})">{weight:.{digits}}</td>' for weight in row)
        + "</tr>"
        for label, row in zip(labels or [""] * len(weights), weights.tolist(), strict=True)
    )
    return f"<table>{head}{rows}</table>"


class AttentionImageView(_Drawn):
    """Attention weights over an image. Jupyter and similar notebooks draw it if it is the last line of a cell.

    A click on a patch shows its own weights, and a second one those of [CLS]; of more than 300 tokens only those of [CLS] are in the picture.
    """

    weights: NDArray[numpy.float32]
    """(L,L) of all tokens; the patches are at the end, row by row."""
    grid: tuple[int, int]
    """Rows and columns of patches."""
    image: NDArray[numpy.uint8]
    """(height,width,3): the pixels around the crop, reduced to at most 512."""
    crop: ImageCrop
    """The part of this image that the patches cover."""

    def __init__(self, weights: NDArray[numpy.float32], grid: tuple[int, int], image: NDArray[numpy.uint8], crop: ImageCrop, caption: str) -> None:
        self.weights, self.grid, self.image, self.crop, self.caption = weights, grid, image, crop, caption

    def __repr__(self) -> str:
        return f"<attn.AttentionImageView: {_size(self)}{f', {self.caption}' if self.caption else ''}>"

    def _repr_html_(self) -> str:
        return _with_script(self)


def _of_cls(view: AttentionImageView) -> NDArray[numpy.float32]:
    rows, columns = view.grid
    of_patches: NDArray[numpy.float32] = view.weights[0, -rows * columns :].reshape(view.grid)
    return of_patches


def _image_table(view: AttentionImageView) -> str:
    caption = f"<caption>{escape(view.caption)}</caption>" if view.caption else ""
    return _cells(_of_cls(view), caption, digits="2g") if max(view.grid) <= _LARGEST_TABLE else f"<p>{escape(view.caption)}: run scripts to see it.</p>"


def _image_element(view: AttentionImageView, otherwise: str, is_one_of_many: bool) -> str:
    # More tokens, and large pictures of many heads, would have many MB.
    weights = _of_cls(view) if is_one_of_many or len(view.weights) > _MOST_TOKENS else view.weights
    image, crop = reduced(view.image, view.crop, 128) if is_one_of_many else (view.image, view.crop)
    attributes = {
        "src": f"data:image/png;base64,{b64encode(png(image)).decode()}",
        "crop": json.dumps(crop._asdict()),
        "grid": json.dumps(view.grid),
        "weights": _json(weights),
        "caption": view.caption,
    }
    given = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<attention-image {given}>{otherwise}</attention-image>"


def _size(view: AttentionView | AttentionImageView) -> str:
    if isinstance(view, AttentionImageView):
        return f"{view.grid[0]} × {view.grid[1]} patches"
    return f"{len(view.tokens)} × {len(view.keys)} weights"


def _table(view: AttentionView | AttentionImageView) -> str:
    return _image_table(view) if isinstance(view, AttentionImageView) else _map_table(view)


def _element(view: AttentionView | AttentionImageView, otherwise: str, is_one_of_many: bool = False) -> str:
    return _image_element(view, otherwise, is_one_of_many) if isinstance(view, AttentionImageView) else _map_element(view, otherwise)


def _with_script(view: AttentionView | AttentionImageView) -> str:
    code = script()
    if code is None:
        return _table(view) + _NO_SCRIPT
    # Untrusted notebooks and code hosts run no scripts and show the table.
    return f"{_element(view, _table(view))}<script>{code}</script>"


class AttentionGrid(_Drawn):
    """Attention maps of several heads. Jupyter and similar notebooks draw it if it is the last line of a cell."""

    views: Sequence[Sequence[AttentionView | AttentionImageView]]
    """The maps, by layer and head."""

    def __init__(self, views: Sequence[Sequence[AttentionView | AttentionImageView]], caption: str) -> None:
        self.views, self.caption = views, caption

    def __repr__(self) -> str:
        rows, columns = len(self.views), len(self.views[0])
        return f"<attn.AttentionGrid: {rows} × {columns} maps of {_size(self.views[0][0])}>"

    def _repr_html_(self) -> str:
        code, caption = script(), f"<p>{escape(self.caption)}</p>" if self.caption else ""
        maps = [view for row in self.views for view in row]
        if code is None:
            return caption + "".join(_table(view) for view in maps) + _NO_SCRIPT
        # Tables of all heads would be much larger.
        elements = "".join(_element(view, f"<p>{escape(view.caption)}: run scripts to see it.</p>", True) for view in maps)
        style = f"display: grid; overflow-x: auto; gap: 1em; grid-template-columns: repeat({len(self.views[0])}, minmax(12em, 1fr))"
        return f'{caption}<div style="{style}">{elements}</div><script>{code}</script>'


@overload
def show(
    what: ImageModel,
    image: Any,
    /,
    *,
    layer: int | Literal["all"] = -1,
    head: Literal["all"],
    caption: str | None = None,
) -> AttentionGrid: ...


@overload
def show(what: ImageModel, image: Any, /, *, layer: Literal["all"], head: int | None = None, caption: str | None = None) -> AttentionGrid: ...


@overload
def show(what: ImageModel, image: Any, /, *, layer: int = -1, head: int | None = None, caption: str | None = None) -> AttentionImageView: ...


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
    what: TextModel | ImageModel | ArrayLike,
    text: Any,
    /,
    *,
    layer: int | Literal["all"] = -1,
    head: int | Literal["all"] | None = None,
    keys: Sequence[str] | None = None,
    caption: str | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionView | AttentionImageView | AttentionGrid:
    """Draws the attention of a model on a text or an image, or given weights, as a map for notebooks. The map needs no network.

    show(model, text) and show(model, image): the weights of one layer and head. show(weights, tokens): an array (L,S) with labels for its rows.

    model: a TextModel or ImageModel. image: as in ImageModel.preprocess(), with the options layer, head and caption. text: a text, or a pair of texts (a tuple or list of two), which the model reads as one input.
    layer: counted from 0; negative numbers count from the end. head: counted from 0; None for the mean of all heads.
    'all' as layer or head draws a map for each of them.
    weights: (L,S); leading dimensions of 1 are ignored. tokens: L labels of the rows. keys: S labels of the columns, default tokens.
    caption: a text above the map; default the layer and head.
    scale: the brightest colour is that of the largest weight of the map ('head') or of each row ('row').
    threshold: weights below it are not drawn.

    Returns an AttentionView, for an image an AttentionImageView, with 'all' an AttentionGrid. Raises ShapeError unless weights are (L,S) with L tokens and S keys, DtypeError unless
    they are real numbers, ArgumentError for NaN or infinite weights and labels that are not texts, ConfigError for another scale, OutOfRangeError for a layer or head that does not exist, and the errors of
    TextModel.tokenize().

    >>> model = attn.TextModel.load("testdata/models/sentiment")
    >>> attn.show(model, "not bad at all", layer=1, head=2)
    <attn.AttentionView: 6 × 6 weights, layer 1, head 2>
    >>> attn.show(model, "not bad at all", layer="all", head="all")
    <attn.AttentionGrid: 2 × 4 maps of 6 × 6 weights>
    >>> model = attn.ImageModel.load("testdata/vision/digits")
    >>> attn.show(model, np.zeros((64, 64, 3), np.uint8), head=0)
    <attn.AttentionImageView: 8 × 8 patches, layer 3, head 0>
    """
    check_drawing("show", caption, scale, threshold)
    if isinstance(what, ImageModel):
        for name, is_given in (("keys", keys is not None), ("scale", scale != "head"), ("threshold", threshold != 0)):
            if is_given:
                fail(ArgumentError, "show", name, "nothing with an image model", "given")
        return _show_image(what, text, layer, head, caption)
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


def _show_image(
    model: ImageModel, image: Any, layer: int | Literal["all"], head: int | Literal["all"] | None, caption: str | None
) -> AttentionImageView | AttentionGrid:
    inputs = model.preprocess(image)
    if len(inputs.crops) != 1:
        fail(ArgumentError, "show", "image", "one image", f"{len(inputs.crops)} images", "Call show() once for each image")
    attentions = model(inputs, output_attentions=True).attentions
    assert attentions is not None
    pixels, crop = reduced(pixels_of(image), inputs.crops[0])
    layers = places("show", "layer", layer, len(attentions))
    heads = [None] if head is None else places("show", "head", head, attentions[0].shape[1])

    def view(at: int, of: int | None, title: str | None) -> AttentionImageView:
        weights, name = of_head(attentions[at][0], of)
        return AttentionImageView(weights, inputs.grid, pixels, crop, f"layer {at}, {name}" if title is None else title)

    if layer == "all" or head == "all":
        return AttentionGrid([[view(at, of, None) for of in heads] for at in layers], caption or "")
    return view(layers[0], heads[0], caption)


def of_head(heads: NDArray[numpy.float32], head: int | None) -> tuple[NDArray[numpy.float32], str]:
    return (heads.mean(axis=0), f"mean of {len(heads)} heads") if head is None else (heads[head], f"head {head}")


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
    weights, name = of_head(attentions[layer][0], head)
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
        fail(ArgumentError, "show", "the first argument", "a TextModel, an ImageModel or weights (L,S)", type(given).__name__)
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
    file = files("attn") / "elements.js"
    return file.read_text(encoding="utf-8") if file.is_file() else None
