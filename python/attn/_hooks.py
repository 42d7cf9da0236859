"""Intermediate results of a decoder under TransformerLens' hook names, read and changed."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, cast

import numpy
from numpy.typing import ArrayLike, NDArray

from ._attn import LayerPatch, TextModel
from ._calls import checked
from ._errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError, UnsupportedError, fail
from ._results import TextModelOutput

Floats = NDArray[numpy.float32]


class _Hook(NamedTuple):
    trace: str | None
    """The name in forward(); None for a hidden state."""
    heads: Literal["split", "transpose"] | None = None
    """Whether the last dimension is split into heads, or heads come before positions."""
    patches: str | None = None
    """The part of a LayerPatch that replaces the value."""


# In the order in which a layer computes them.
_HOOKS = {
    "hook_resid_pre": _Hook(None, patches="hidden_state"),
    "attn.hook_q": _Hook("q_proj", heads="split", patches="q_proj"),
    "attn.hook_k": _Hook("k_proj", heads="split", patches="k_proj"),
    "attn.hook_v": _Hook("v_proj", heads="split", patches="v_proj"),
    "attn.hook_rot_q": _Hook("q", heads="transpose"),
    "attn.hook_rot_k": _Hook("k", heads="transpose"),
    "attn.hook_attn_scores": _Hook("masked_scores"),
    "attn.hook_pattern": _Hook("weights", patches="weights"),
    "attn.hook_z": _Hook("merged", heads="split", patches="merged"),
    "hook_attn_out": _Hook("output"),
    "hook_resid_mid": _Hook("attn_residual"),
    "mlp.hook_post": _Hook("ff_hidden"),
    "hook_mlp_out": _Hook("ff_output"),
    "hook_resid_post": _Hook("ff_residual", patches="hidden_state"),
}
_ORDER = {name: place for place, name in enumerate(_HOOKS)}
_MODEL_TYPES = ("gpt2", "llama", "mistral", "qwen2", "qwen3")

Place = tuple[int, str]
"""A layer and a name of _HOOKS."""


def _layers(op: str, model: Any) -> int:
    if not isinstance(model, TextModel):
        fail(ArgumentError, op, "model", "a TextModel", type(model).__name__)
    found = model.config.get("model_type")
    if found not in _MODEL_TYPES:
        fail(UnsupportedError, op, "the model_type", f"one of {', '.join(_MODEL_TYPES)}", str(found))
    return model.num_layers


def _places(op: str, argument: str, name: Any, layers: int) -> list[Place]:
    """The layers and the hook of a name, which without blocks.N. means all layers; a negative N counts from the end."""
    if not isinstance(name, str):
        fail(ArgumentError, op, argument, "the name of a hook", type(name).__name__)
    found = re.fullmatch(r"(?:blocks\.(-?\d{1,5})\.)?(.*)", name, re.S)
    assert found is not None
    hook = found[2]
    if hook not in _HOOKS:
        similar = get_close_matches(hook, _HOOKS, 1)
        help = f"Did you mean {similar[0]}?" if similar else "Write blocks.N. before it for a single layer"
        fail(ArgumentError, op, argument, f"one of {', '.join(_HOOKS)}", repr(name), help)
    if found[1] is None:
        return [(layer, hook) for layer in range(layers)]
    layer = int(found[1])
    if not -layers <= layer < layers:
        fail(OutOfRangeError, op, argument, f"a layer from 0 to {layers - 1}, or from -{layers} to -1", name)
    return [(layer % layers, hook)]


def _ids(op: str, model: TextModel, text: Any) -> NDArray[Any]:
    ids = model.tokenize(text, truncation=False).input_ids[0] if isinstance(text, str) else numpy.asarray(text)
    if ids.ndim != 1:
        fail(ShapeError, op, "text", "a text or a list of token ids", f"an array of shape {ids.shape}")
    if ids.size == 0:
        fail(ArgumentError, op, "text", "at least one token", "empty")
    return ids[None]


class _Run:
    """Forwards of one text, and the values at hooks."""

    def __init__(self, model: TextModel, ids: NDArray[Any], places: Iterable[Place]) -> None:
        asked = list(places)
        names = {_HOOKS[hook].trace for _, hook in asked}
        if any(_HOOKS[hook].heads == "split" for _, hook in asked):
            names.add("q_proj")
        self._model, self._ids = model, ids
        self._names: Any = sorted(name for name in names if name is not None)
        self._layers = sorted({layer for layer, _ in asked})

    def forward(self, patches: Iterable[LayerPatch] = (), logits: bool = True) -> TextModelOutput:
        trace: dict[str, Any] = {"trace": self._names, "trace_layers": self._layers} if self._names else {}
        return self._model(self._ids, output_hidden_states=True, patch=list(patches), output_logits=logits, **trace)

    def value(self, output: TextModelOutput, layer: int, hook: str) -> Floats:
        name, heads, _ = _HOOKS[hook]
        assert output.hidden_states is not None
        if name is None:
            return output.hidden_states[layer]
        assert output.trace is not None
        values = output.trace[layer][name]
        if heads == "transpose":
            return numpy.ascontiguousarray(values.swapaxes(1, 2))
        if heads is None:
            return values
        # Keys and values may have fewer heads.
        width = output.trace[layer]["q_proj"].shape[2] // self._model.num_heads
        return values.reshape(*values.shape[:2], -1, width)


@checked
def trace(model: TextModel, text: str | ArrayLike, names: Iterable[str]) -> dict[str, NDArray[numpy.float32]]:
    """Returns intermediate results under TransformerLens' hook names, with its shapes, as run_with_cache() does (Nanda & Bloom 2022).

    model: a decoder. text: a text, or a one-dimensional array of token ids.
    names: hook names; without 'blocks.N.' of all layers; a negative N counts from the end. After 'blocks.N.' they are 'hook_resid_pre'
    (1,L,E), 'attn.hook_q' (1,L,H,D) before RoPE, 'attn.hook_k' and 'attn.hook_v' (1,L,Hkv,D), 'attn.hook_rot_q' (1,L,H,D) and
    'attn.hook_rot_k' (1,L,Hkv,D) after RoPE, 'attn.hook_attn_scores' and 'attn.hook_pattern' (1,H,L,L), 'attn.hook_z' (1,L,H,D),
    'hook_attn_out' (1,L,E), 'hook_resid_mid' (1,L,E), 'mlp.hook_post' (1,L,F) after the gate, 'hook_mlp_out' (1,L,E) and 'hook_resid_post'
    (1,L,E).

    Returns a dict of arrays by their full names, with N from 0. Raises ArgumentError for an unknown name, OutOfRangeError if a layer does
    not exist or the text is too long, UnsupportedError for another kind of model.

    >>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
    >>> cache = attn.lens.trace(model, "The old man", ["blocks.1.attn.hook_pattern", "hook_resid_post"])
    >>> {name: array.shape for name, array in cache.items()}
    {'blocks.1.attn.hook_pattern': (1, 4, 6, 6), 'blocks.0.hook_resid_post': (1, 6, 24), 'blocks.1.hook_resid_post': (1, 6, 24)}
    """
    layers = _layers("trace", model)
    given: Any = names
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        help = f"Write names=[{given!r}]" if isinstance(given, str) else None
        fail(ArgumentError, "trace", "names", "a list of names", type(given).__name__, help)
    places = [place for i, name in enumerate(given) for place in _places("trace", f"names[{i}]", name, layers)]
    run = _Run(model, _ids("trace", model, text), places)
    output = run.forward(logits=False)
    return {f"blocks.{layer}.{hook}": run.value(output, layer, hook) for layer, hook in places}


@checked
def run_with_hooks(
    model: TextModel, text: str | ArrayLike, hooks: Mapping[str, Callable[[NDArray[numpy.float32]], ArrayLike | None]]
) -> TextModelOutput:
    """Runs a model and calls functions on intermediate results, which may replace them, as TransformerLens' run_with_hooks().

    Functions are called in the order in which the model computes their values, and see the changes of the functions before them. The model
    runs once, and once more for each change.

    model: a decoder. text: a text, or a one-dimensional array of token ids.
    hooks: functions by hook name, as in trace(). A function receives a copy of the value and returns its replacement, or None to leave it as
    it is. 'hook_resid_pre', 'attn.hook_q', 'attn.hook_k', 'attn.hook_v', 'attn.hook_pattern', 'attn.hook_z' and, except that of the last
    layer, 'hook_resid_post' can be replaced.

    Returns the TextModelOutput of the last run, with hidden_states. Raises ArgumentError for an unknown name, UnsupportedError for another
    kind of model or a replacement of another value, ShapeError if a replacement has another shape, DtypeError if it is not made of real
    numbers, OutOfRangeError if a layer does not exist or the text is too long.

    >>> model = attn.TextModel.load("testdata/models/tiny-gpt2")  # untrained weights
    >>> def without_head_2(z):
    ...     z[:, :, 2] = 0
    ...     return z
    >>> output = attn.lens.run_with_hooks(model, "The old man", {"blocks.0.attn.hook_z": without_head_2})
    >>> mask = np.ones((2, 4), np.float32)
    >>> mask[0, 2] = 0
    >>> bool((output.logits == model(model.tokenize("The old man"), head_mask=mask).logits).all())
    True
    """
    op = "run_with_hooks"
    layers = _layers(op, model)
    if not isinstance(cast(object, hooks), Mapping):
        fail(ArgumentError, op, "hooks", "a dict of functions by name", type(hooks).__name__)
    calls = [(place, function) for name, function in hooks.items() for place in _places(op, f"hooks[{name!r}]", name, layers)]
    for (layer, hook), function in calls:
        if not callable(function):
            fail(ArgumentError, op, f"hooks['blocks.{layer}.{hook}']", "a function", cast(object, function).__class__.__name__)
    calls.sort(key=lambda call: (call[0][0], _ORDER[call[0][1]]))
    run = _Run(model, _ids(op, model, text), (place for place, _ in calls))
    patches: dict[int, dict[str, Floats]] = {}
    output = run.forward()
    for (layer, hook), function in calls:
        value = run.value(output, layer, hook)
        replacement = function(value.copy())
        if replacement is None:
            continue
        at = layer + 1 if hook == "hook_resid_post" else layer
        name = f"the result of hooks['blocks.{layer}.{hook}']"
        part = _HOOKS[hook].patches
        if part is None or at == layers:
            known = ", ".join(hook for hook, of in _HOOKS.items() if of.patches is not None)
            help = "The output of the last layer cannot be replaced" if part else f"Replace the value of one of {known}"
            fail(UnsupportedError, op, name, "None", "an array", help)
        array = _floats(op, name, replacement, value)
        patches.setdefault(at, {})[part] = array.reshape(*array.shape[:2], -1) if _HOOKS[hook].heads == "split" else array
        output = run.forward(LayerPatch(layer, **values) for layer, values in patches.items())
    return output


def _floats(op: str, name: str, given: ArrayLike, value: Floats) -> Floats:
    try:
        array = numpy.asarray(given)
    except ValueError:
        fail(ShapeError, op, name, f"shape {value.shape}", "a list with rows of different lengths")
    if not numpy.can_cast(array.dtype, numpy.float32, "same_kind"):
        fail(DtypeError, op, name, "real numbers", array.dtype.name)
    if array.shape != value.shape:
        fail(ShapeError, op, name, f"shape {value.shape}", f"an array of shape {array.shape}")
    return array.astype(numpy.float32, copy=False)
