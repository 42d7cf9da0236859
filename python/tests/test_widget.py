"""attn.widget(). If anywidget is not installed, a class of traitlets with the same methods stands in for its widget."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attn
import numpy
import pytest
from attn import _show, _widget

from browser import see
from golden import testdata


@pytest.fixture(params=["stand-in", "anywidget"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name == "anywidget":
        pytest.importorskip("anywidget")
    else:
        traitlets = pytest.importorskip("traitlets")  # of ipykernel

        def draw(self: Any, **options: Any) -> Any:
            return {"text/plain": "widget"}, options

        module = ModuleType("anywidget")
        vars(module)["AnyWidget"] = type("AnyWidget", (traitlets.HasTraits,), {"_repr_mimebundle_": draw})
        monkeypatch.setitem(sys.modules, "anywidget", module)
    monkeypatch.setattr(_widget, "_class", _widget._class.__wrapped__)
    return name


def test_a_live_map_follows_its_text_layer_and_head(library: str, sentiment: attn.TextModel, tmp_path: Path) -> None:
    live = attn.widget(sentiment, "not bad at all", layer=-2, head=2, scale="row", threshold=0.01)
    expected = attn.show(sentiment, "not bad at all", layer=0, head=2)
    assert repr(live) == "<attn.AttentionWidget: layer 0, head 2>"
    assert (live.widget.layer, live.widget.head, live.widget.layers, live.widget.heads) == (0, 2, 2, 4)
    assert live.widget.map == {
        "tokens": expected.tokens,
        "keys": expected.keys,
        "weights": expected.weights.tolist(),
        "caption": "layer 0, head 2",
        "scale": "row",
        "threshold": 0.01,
    }
    live.widget.text = "fine"  # as the browser does
    live.widget.layer = 1
    live.widget.head = -1
    assert live.widget.map["tokens"] == ["[CLS]", "fine", "[SEP]"]
    assert numpy.array_equal(live.view.weights, attn.show(sentiment, "fine").weights)
    assert live.view.caption == live.widget.map["caption"] == "layer 1, mean of 4 heads"
    live.view.save(tmp_path / "map.html")
    assert live._repr_mimebundle_() is not None
    assert "text" in live.widget.trait_names(sync=True)
    assert attn.widget(sentiment, "").widget.map["tokens"] == ["[CLS]", "[SEP]"]


def test_a_text_that_the_model_refuses_is_reported(library: str) -> None:
    model = attn.TextModel.load(testdata / "models" / "tiny-gpt2")
    live = attn.widget(model, "The old man")
    shown = live.widget.map
    live.widget.text = "a\ud800"
    assert "surrogates" in live.widget.error
    assert live.widget.map == shown
    live.widget.text = "The man"
    assert live.widget.error == ""
    assert live.widget.map["tokens"] == model.tokenize("The man").tokens[0]


def test_wrong_calls_are_refused(library: str, sentiment: attn.TextModel) -> None:
    for options, words in (({"layer": 2}, "widget: layer is 2, expected a number from -2 to 1"), ({"head": 4}, "widget: head is 4")):
        with pytest.raises(attn.OutOfRangeError, match=words):
            attn.widget(sentiment, "not bad", **options)
    with pytest.raises(attn.ArgumentError, match="widget: text is list, expected a text"):
        attn.widget(sentiment, ["a"])  # type: ignore[arg-type]
    with pytest.raises(attn.ArgumentError, match="widget: text is missing"):
        attn.widget(sentiment)  # type: ignore[call-arg]
    with pytest.raises(attn.ConfigError, match="widget: layer is 'all'"):
        attn.widget(sentiment, "a", layer="all")  # type: ignore[arg-type]


def test_a_build_without_the_script_has_no_widget(library: str, sentiment: attn.TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_widget, "script", lambda: None)
    with pytest.raises(attn.UnsupportedError, match="Build attn with Node"):
        attn.widget(sentiment, "a")


def test_without_anywidget_the_error_names_the_remedy(sentiment: attn.TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)  # import_module() raises
    monkeypatch.setattr(_widget, "_class", _widget._class.__wrapped__)
    with pytest.raises(attn.UnsupportedError, match=r"anywidget is missing, .* pip install anywidget, or call attn\.show\(\)"):
        attn.widget(sentiment, "a")


PAGE = """<!doctype html><meta charset=utf-8><body style="width: 600px"><div id=cell style="color: #111"></div>
<script type=module>
const values = STATE, handlers = {}, sent = [];
const model = {
  get: (name) => values[name],
  set: (name, value) => (values[name] = value),
  save_changes: () => sent.push([values.text, values.layer, values.head]),
  on: (event, call) => (handlers[event] ??= []).push(call),
};
const answer = (changes) => {
  Object.assign(values, changes);
  for (const name of Object.keys(changes)) for (const call of handlers[`change:${name}`] ?? []) call();
};
const { default: widget } = await import(URL.createObjectURL(new Blob([CODE], { type: 'text/javascript' })));
const cell = document.getElementById('cell');
widget.render({ model, el: cell });
const input = cell.querySelector('input'), [layer, head] = cell.querySelectorAll('select'), map = cell.querySelector('attention-map');
const before = { text: input.value, layer: layer.value, head: head.value, layers: layer.length, heads: head.length };
for (const part of 'not') {
  input.value += part;
  input.dispatchEvent(new Event('input'));
}
await new Promise((done) => setTimeout(done, 400));
layer.value = '0';
layer.dispatchEvent(new Event('change'));
head.value = '-1';
head.dispatchEvent(new Event('change'));
answer({ error: 'too long' });
const error = cell.querySelector('[role=alert]').textContent;
answer({ error: '', head: 3, map: { tokens: ['a', 'b'], keys: ['a', 'b'], weights: [[1, 0], [0.5, 0.5]], caption: 'layer 0, head 3', scale: 'head', threshold: 0 } });
const until = () => {
  const canvas = map.shadowRoot.querySelector('canvas');
  const label = canvas.ariaLabel ?? '';
  if (!label.includes('2 rows')) return setTimeout(until, 20);
  const seen = { before, sent, error, head: head.value, caption: map.caption, label, left: cell.querySelector('[role=alert]').textContent };
  fetch('/seen', { method: 'POST', body: JSON.stringify(seen) });
};
until();
</script>"""


def test_chromium_draws_the_live_map_and_sends_choices(chromium: str, tmp_path: Path, sentiment: attn.TextModel) -> None:
    code = _show.script()
    assert code is not None
    view = attn.show(sentiment, "bad", layer=1, head=2)
    shown = {"tokens": view.tokens, "keys": view.keys, "weights": view.weights.tolist(), "caption": view.caption, "scale": "head", "threshold": 0}
    state = {"text": "bad ", "layer": 1, "head": 2, "layers": 2, "heads": 4, "error": "", "map": shown}
    page = PAGE.replace("STATE", json.dumps(state)).replace("CODE", json.dumps(code + _widget._LIVE).replace("</", "<\\/"))
    seen = see(chromium, page, tmp_path)
    assert seen["before"] == {"text": "bad ", "layer": "1", "head": "2", "layers": 2, "heads": 5}
    assert seen["sent"] == [["bad not", 1, 2], ["bad not", 0, 2], ["bad not", 0, -1]]  # one message for three keys
    assert (seen["error"], seen["left"]) == ("too long", "")
    assert (seen["head"], seen["caption"]) == ("3", "layer 0, head 3")
