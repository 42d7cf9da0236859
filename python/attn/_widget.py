"""A live attention map for notebooks: the element <attention-map> with a text, a layer and a head to choose, over the package anywidget."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal, cast

from ._attn import TextModel
from ._calls import checked
from ._errors import ArgumentError, AttnError, ConfigError, UnsupportedError, fail
from ._show import AttentionView, attentions_of, check_drawing, places, script, view_of

_LIVE = """
export default {
  render({ model, el }) {
    const make = (name, properties, ...children) => {
      const made = Object.assign(document.createElement(name), properties);
      made.append(...children);
      return made;
    };
    const later = (call) => {
      let timer = 0;
      return () => {
        clearTimeout(timer);
        timer = setTimeout(call, 200);
      };
    };
    const send = (name, value) => {
      model.set(name, value);
      model.save_changes();
    };
    const text = make('input', { value: model.get('text'), style: 'flex: 1; min-width: 12em; font: inherit' });
    text.addEventListener('input', later(() => send('text', text.value)));
    const choice = (name, options) => {
      const select = make('select', { style: 'font: inherit' }, ...options.map(([value, label]) => new Option(label, value)));
      const show = () => (select.value = String(model.get(name)));
      select.addEventListener('change', () => send(name, Number(select.value)));
      model.on(`change:${name}`, show);
      show();
      return make('label', {}, `${name} `, select);
    };
    const numbers = (count) => Array.from({ length: count }, (_, i) => [i, i]);
    const map = make('attention-map', {}), error = make('p', { role: 'alert', style: 'margin: 0' });
    const draw = () => {
      Object.assign(map, model.get('map'));
      error.textContent = model.get('error');
      if (text.getRootNode().activeElement !== text) text.value = model.get('text');
    };
    model.on('change:map', draw);
    model.on('change:error', draw);
    model.on('change:text', draw);
    draw();
    const heads = [[-1, 'mean'], ...numbers(model.get('heads'))];
    const style = 'display: flex; flex-wrap: wrap; gap: 0.5em 1em; align-items: baseline; margin-bottom: 0.5em';
    const controls = [make('label', { style: 'flex: 1; display: flex; gap: 0.5em' }, 'text ', text)];
    el.append(make('div', { style }, ...controls, choice('layer', numbers(model.get('layers'))), choice('head', heads)), error, map);
  },
};
"""


@cache
def _class() -> Any:
    try:
        anywidget: Any = import_module("anywidget")
        traitlets: Any = import_module("traitlets")
    except ImportError as error:
        help = "Install it with pip install anywidget, or call attn.show() for a map that stays as it is"
        message = f"widget: the package anywidget is missing, expected an installed one. {help}."
        raise UnsupportedError(message, {"op": "widget", "argument": "anywidget", "expected": "an installed one", "help": help}) from error
    code = script()
    if code is None:
        fail(UnsupportedError, "widget", "this build of attn", "one with the script of the map", "one without it", "Build attn with Node")
    members: dict[str, Any] = {"_esm": code + _LIVE}
    for name, trait in (("text", traitlets.Unicode()), ("error", traitlets.Unicode()), ("map", traitlets.Dict())):
        members[name] = trait.tag(sync=True)
    for name in ("layer", "head", "layers", "heads"):
        members[name] = traitlets.Int().tag(sync=True)
    return type("AttentionMap", (anywidget.AnyWidget,), members)


class AttentionWidget:
    """A live attention map, from widget(). Jupyter and similar notebooks draw it if it is the last line of a cell."""

    widget: Any
    """The anywidget.AnyWidget, for example for a layout of ipywidgets."""
    view: AttentionView
    """The map as it is now; save() writes it as a page."""

    def __init__(self, model: TextModel, text: str, layer: int, head: int | None, scale: Literal["head", "row"], threshold: float) -> None:
        attentions, tokens = attentions_of(model, text)
        [at] = places("widget", "layer", layer, model.num_layers)
        of = None if head is None else places("widget", "head", head, model.num_heads)[0]

        def show(change: Any) -> None:
            nonlocal attentions, tokens
            try:
                if change is not None and change["name"] == "text":
                    attentions, tokens = attentions_of(model, self.widget.text)
                where = self.widget.layer, None if self.widget.head < 0 else self.widget.head
                self.view = view_of(attentions, tokens, *where, None, scale, threshold)
            except AttnError as error:
                self.widget.error = str(error)
                return
            shown = {"tokens": tokens, "keys": tokens, "weights": self.view.weights.tolist(), "caption": self.view.caption}
            self.widget.error = ""
            self.widget.map = shown | {"scale": scale, "threshold": threshold}

        self.widget = _class()(text=text, layer=at, head=-1 if of is None else of, layers=model.num_layers, heads=model.num_heads)
        self.widget.observe(show, names=["text", "layer", "head"])
        show(None)

    def __repr__(self) -> str:
        return f"<attn.AttentionWidget: {self.view.caption}>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        draw: Callable[..., Any] = self.widget._repr_mimebundle_
        return draw(**options)


@checked
def widget(
    model: TextModel,
    text: str,
    /,
    *,
    layer: int = -1,
    head: int | None = None,
    scale: Literal["head", "row"] = "head",
    threshold: float = 0.0,
) -> AttentionWidget:
    """Draws the attention of a model on a text as a live map for notebooks, where you can edit the text and choose the layer and the head.

    It needs the package anywidget and a running kernel; show() draws a map that needs neither.

    model: a TextModel. text: a text.
    layer: the first one shown, counted from 0; negative numbers count from the end. head: counted from 0; None for the mean of all heads.
    scale: the brightest colour is that of the largest weight of the map ('head') or of each row ('row').
    threshold: weights below it are not drawn.

    Returns an AttentionWidget. Raises UnsupportedError without anywidget, OutOfRangeError for a layer or head that does not exist, and the
    errors of TextModel.tokenize(); a text that you type and that the model refuses is reported below the text.

    >>> attn.widget(attn.TextModel.load("testdata/models/sentiment"), "not bad at all", layer=1, head=2)
    <attn.AttentionWidget: layer 1, head 2>
    """
    if not isinstance(cast(object, model), TextModel):
        fail(ArgumentError, "widget", "model", "a TextModel", type(model).__name__)
    if not isinstance(cast(object, text), str):
        fail(ArgumentError, "widget", "text", "a text", type(text).__name__)
    for name, value in (("layer", layer), ("head", head)):
        if isinstance(value, str):
            fail(ConfigError, "widget", name, "a whole number", repr(value))
    check_drawing("widget", None, scale, threshold)
    return AttentionWidget(model, text, layer, head, scale, threshold)
