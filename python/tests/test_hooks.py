"""Several patches a call, and attn.lens.trace() and run_with_hooks(), against GPT-2 in float64 with a hook at each value."""

from collections.abc import Callable
from typing import Any

import attn
import numpy
import pytest

from golden import testdata

IDS = [20, 131, 7, 250, 64, 99]
H, D = 4, 6
Hook = Callable[[str, numpy.ndarray], numpy.ndarray | None]


def gpt2(ids: list[int], hook: Hook) -> numpy.ndarray:
    """Returns the logits (L,V); a hook may replace each value."""
    state = attn.TextModel.load(testdata / "models" / "tiny-gpt2").state_dict()
    w = {name.removeprefix("transformer."): array.astype(float) for name, array in state.items()}

    def norm(x: numpy.ndarray, name: str) -> numpy.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: numpy.ndarray, name: str) -> numpy.ndarray:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def at(name: str, value: numpy.ndarray) -> numpy.ndarray:
        replacement = hook(name, value)
        return value if replacement is None else replacement

    L = len(ids)
    x = w["wte.weight"][ids] + w["wpe.weight"][:L]
    for layer in range(2):
        name, block = f"h.{layer}", f"blocks.{layer}"
        x = at(f"{block}.hook_resid_pre", x)
        q, k, v = numpy.split(linear(norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn"), 3, axis=1)
        q, k, v = (at(f"{block}.attn.hook_{part}", each.reshape(L, H, D)) for part, each in (("q", q), ("k", k), ("v", v)))
        scores = numpy.einsum("ihd,jhd->hij", q, k) / numpy.sqrt(D)
        powers = numpy.exp(scores) * numpy.tril(numpy.ones((L, L)))
        pattern = at(f"{block}.attn.hook_pattern", powers / powers.sum(axis=-1, keepdims=True))
        z = at(f"{block}.attn.hook_z", numpy.einsum("hij,jhd->ihd", pattern, v))
        mid = at(f"{block}.hook_resid_mid", x + at(f"{block}.hook_attn_out", linear(z.reshape(L, H * D), f"{name}.attn.c_proj")))
        hidden = linear(norm(mid, f"{name}.ln_2"), f"{name}.mlp.c_fc")
        hidden = at(f"{block}.mlp.hook_post", hidden / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (hidden + 0.044715 * hidden**3))))
        x = at(f"{block}.hook_resid_post", mid + at(f"{block}.hook_mlp_out", linear(hidden, f"{name}.mlp.c_proj")))
    return norm(x, "ln_f") @ w["wte.weight"].T


@pytest.fixture(scope="module")
def model() -> attn.TextModel:
    return attn.TextModel.load(testdata / "models" / "tiny-gpt2")


def near(got: numpy.ndarray | None, expected: numpy.ndarray) -> bool:
    assert got is not None
    assert got.shape == expected.shape
    return bool(numpy.abs(got - expected).max() < 1e-5 * max(1, numpy.abs(expected).max()))


def test_trace_has_the_values_of_the_reference(model: attn.TextModel) -> None:
    values: dict[str, numpy.ndarray] = {}

    def keep(name: str, value: numpy.ndarray) -> None:
        values[name] = value

    logits = gpt2(IDS, keep)
    assert near(model([IDS]).logits, logits[None])
    names = list(dict.fromkeys(name.removeprefix("blocks.0.").removeprefix("blocks.1.") for name in values))
    assert len(names) == 11
    cache = attn.lens.trace(model, IDS, names)
    assert set(cache) == set(values)
    for name, value in values.items():
        assert near(cache[name], value[None]), name
    scores = attn.lens.trace(model, IDS, ["attn.hook_attn_scores"])["blocks.1.attn.hook_attn_scores"]
    assert near(attn.softmax(scores), values["blocks.1.attn.hook_pattern"][None])
    assert list(attn.lens.trace(model, "The old man", ["blocks.1.hook_mlp_out", "blocks.0.attn.hook_z"])) == ["blocks.1.hook_mlp_out", "blocks.0.attn.hook_z"]
    llama = attn.TextModel.load(testdata / "models" / "tiny-llama")  # two heads of keys and values
    shapes = [array.shape for array in attn.lens.trace(llama, IDS, ["blocks.1.attn.hook_q", "blocks.1.attn.hook_k", "blocks.0.attn.hook_z"]).values()]
    assert shapes == [(1, 6, 4, 6), (1, 6, 2, 6), (1, 6, 4, 6)]
    rotated = attn.lens.trace(llama, IDS, ["attn.hook_rot_q", "attn.hook_rot_k"])
    forwarded = llama([IDS], trace=["q", "k"]).trace
    assert forwarded is not None
    for (layer, name), value in {(layer, name): forwarded[layer][name] for layer in (0, 1) for name in ("q", "k")}.items():
        assert (rotated[f"blocks.{layer}.attn.hook_rot_{name}"] == value.swapaxes(1, 2)).all()


CHANGES: dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "blocks.0.hook_resid_pre": lambda x: x * numpy.linspace(0.5, 1.5, 6)[:, None],
    "blocks.0.attn.hook_z": lambda z: z[..., ::-1, :] * 2,
    "blocks.0.hook_resid_post": lambda x: x + numpy.linspace(-1, 1, 24),
    "blocks.1.hook_resid_pre": lambda x: x - x.mean(axis=-2, keepdims=True),
    "blocks.1.attn.hook_z": lambda z: numpy.where(numpy.arange(H)[:, None] == 2, 0, z),
}


@pytest.mark.parametrize("names", [[name] for name in CHANGES] + [list(CHANGES), list(CHANGES)[::-1], list(CHANGES)[1::2]])
def test_changes_at_hooks_are_those_of_the_reference(model: attn.TextModel, names: list[str]) -> None:
    def change(name: str, value: numpy.ndarray) -> numpy.ndarray | None:
        return CHANGES[name](value) if name in names else None

    expected = gpt2(IDS, change)
    assert not near(model([IDS]).logits, expected[None])
    assert near(attn.lens.run_with_hooks(model, IDS, {name: CHANGES[name] for name in names}).logits, expected[None])


def test_functions_see_the_changes_before_them(model: attn.TextModel) -> None:
    calls: list[tuple[str, numpy.ndarray]] = []

    def watch(name: str) -> Callable[[numpy.ndarray], None]:
        def call(value: numpy.ndarray) -> None:
            calls.append((name, value.copy()))
            value[:] = 0  # a copy

        return call

    watched = ["blocks.1.attn.hook_pattern", "blocks.0.hook_resid_post", "blocks.0.attn.hook_pattern"]
    changes = {"blocks.0.attn.hook_z": CHANGES["blocks.0.attn.hook_z"]}
    output = attn.lens.run_with_hooks(model, IDS, {name: watch(name) for name in watched} | changes)
    expected: dict[str, numpy.ndarray] = {}

    def keep(name: str, value: numpy.ndarray) -> numpy.ndarray | None:
        expected[name] = value
        return changes[name](value) if name in changes else None

    assert near(output.logits, gpt2(IDS, keep)[None])
    assert [name for name, _ in calls] == watched[::-1]
    for name, value in calls:
        assert near(value, expected[name][None]), name
    states = attn.lens.run_with_hooks(model, IDS, {"hook_resid_pre": lambda x: x.fill(0)}).hidden_states
    plain = model([IDS], output_hidden_states=True).hidden_states
    assert states is not None
    assert plain is not None
    assert all(numpy.array_equal(got, expected) for got, expected in zip(states, plain, strict=True))
    layers: list[Any] = []
    attn.lens.run_with_hooks(model, IDS, {"hook_resid_pre": lambda x: layers.append(x.shape)})
    assert layers == [(1, 6, 24)] * 2
    assert numpy.array_equal(attn.lens.run_with_hooks(model, IDS, {}).logits, model([IDS]).logits)


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama", "tiny-bert", "tiny-albert", "tiny-modernbert"])
def test_several_patches_are_forwards_with_one_patch_each(name: str) -> None:
    model = attn.TextModel.load(testdata / "models" / name)
    rng = numpy.random.default_rng(3)
    plain = model([[5, 6, 7]], output_hidden_states=True, trace=["merged"])
    assert plain.trace is not None
    state, heads = (rng.standard_normal(each.shape, numpy.float32) for each in (plain.last_hidden_state, plain.trace[1]["merged"]))
    first, second = attn.LayerPatch(0, hidden_state=state), attn.LayerPatch(-1 if model.num_layers == 2 else 1, merged=heads)
    begun = model([[5, 6, 7]], output_hidden_states=True, patch=first).hidden_states
    assert begun is not None
    expected = model([[5, 6, 7]], patch=attn.LayerPatch(1, hidden_state=begun[1], merged=heads)).last_hidden_state
    assert not numpy.array_equal(expected, model([[5, 6, 7]], patch=second).last_hidden_state)
    for patch in ([first, second], (second, first), iter([first, second])):
        assert numpy.array_equal(model([[5, 6, 7]], patch=patch).last_hidden_state, expected)
    assert numpy.array_equal(model([[5, 6, 7]], patch=[]).last_hidden_state, plain.last_hidden_state)


def test_patches_that_do_not_fit_are_refused(model: attn.TextModel) -> None:
    state = numpy.zeros((1, 6, 24), numpy.float32)
    patch = attn.LayerPatch(0, hidden_state=state)
    refusals: list[tuple[type[attn.AttnError], str, Any]] = [
        (attn.ArgumentError, r"patch\[1\]\.hidden_state is a second one of layer 0, expected one patch of a value", [patch, attn.LayerPatch(-2, hidden_state=state)]),
        (attn.OutOfRangeError, r"patch\[1\]\.layer is 2, expected a layer from 0 to 1", [patch, attn.LayerPatch(2, hidden_state=state)]),
        (attn.ShapeError, r"patch\[1\]\.merged", [patch, attn.LayerPatch(1, merged=state[:, 1:])]),
        (attn.OutOfRangeError, r"patch\.layer is -3", attn.LayerPatch(-3, hidden_state=state)),
        (attn.ArgumentError, r"patch\[1\] is ndarray, expected a LayerPatch", [patch, state]),
        (attn.ArgumentError, "patch is int, expected a LayerPatch", 3),
        (attn.ArgumentError, "patch", {"layer": 0}),
    ]
    for kind, words, given in refusals:
        with pytest.raises(kind, match=words):
            model([IDS], patch=given)


def test_wrong_hooks_are_refused(model: attn.TextModel) -> None:
    run, trace = attn.lens.run_with_hooks, attn.lens.trace
    bert = attn.TextModel.load(testdata / "models" / "tiny-bert")

    def same(value: numpy.ndarray) -> numpy.ndarray:
        return value

    refusals: list[tuple[type[attn.AttnError], str, Callable[[], object]]] = [
        (attn.ArgumentError, "trace: names is str, .* Write names=", lambda: trace(model, IDS, "hook_resid_pre")),
        (attn.ArgumentError, r"names\[1\] is 'attn.hook_paterns', .* mean attn\.hook_pattern\?", lambda: trace(model, IDS, ["hook_mlp_out", "attn.hook_paterns"])),
        (attn.ArgumentError, r"names\[0\] is int", lambda: trace(model, IDS, [3])),  # type: ignore[list-item]
        (attn.OutOfRangeError, r"names\[0\] is blocks\.2\.hook_mlp_out, expected a layer from 0 to 1", lambda: trace(model, IDS, ["blocks.2.hook_mlp_out"])),
        (attn.UnsupportedError, "model_type is bert, expected one of gpt2", lambda: trace(bert, IDS, ["hook_mlp_out"])),
        (attn.ShapeError, "text", lambda: trace(model, [IDS], ["hook_mlp_out"])),
        (attn.ArgumentError, "at least one token", lambda: run(model, [], {"hook_mlp_out": same})),
        (attn.OutOfRangeError, "400", lambda: run(model, [400], {"hook_mlp_out": same})),
        (attn.UnsupportedError, "hook_resid_pre, attn.hook_z, hook_resid_post", lambda: run(model, IDS, {"blocks.0.hook_mlp_out": same})),
        (attn.UnsupportedError, "last layer", lambda: run(model, IDS, {"blocks.1.hook_resid_post": same})),
        (attn.ShapeError, r"hook_z'\].* expected shape \(1, 6, 4, 6\)", lambda: run(model, IDS, {"attn.hook_z": lambda z: z[:, 1:]})),
        (attn.DtypeError, "complex", lambda: run(model, IDS, {"attn.hook_z": lambda z: z * 1j})),
        (attn.ArgumentError, r"hooks\['blocks\.0\.attn\.hook_z'\] is int", lambda: run(model, IDS, {"attn.hook_z": 3})),  # type: ignore[dict-item]
        (attn.ArgumentError, "run_with_hooks: hooks is missing", lambda: run(model, IDS)),  # type: ignore[call-arg]
    ]
    for kind, words, call in refusals:
        with pytest.raises(kind, match=words):
            call()
    with pytest.raises(ZeroDivisionError):
        run(model, IDS, {"hook_resid_pre": lambda x: x[0, 0, 0] / (1 // 0)})
