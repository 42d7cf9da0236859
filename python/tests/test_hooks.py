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
    "blocks.0.attn.hook_q": lambda q: q[..., ::-1] + 1,
    "blocks.0.attn.hook_k": lambda k: k * numpy.linspace(-1, 2, 4)[:, None],
    "blocks.0.attn.hook_v": lambda v: v[..., ::-1, :, :] * 2,
    "blocks.0.attn.hook_pattern": lambda p: numpy.roll(p, 1, axis=-1),  # also to later tokens, and rows need not sum to 1
    "blocks.0.attn.hook_z": lambda z: z[..., ::-1, :] * 2,
    "blocks.0.hook_resid_post": lambda x: x + numpy.linspace(-1, 1, 24),
    "blocks.1.hook_resid_pre": lambda x: x - x.mean(axis=-2, keepdims=True),
    "blocks.1.attn.hook_v": lambda v: numpy.where(numpy.arange(D) < 3, v, -v),
    "blocks.1.attn.hook_pattern": lambda p: p / 2 + 0.1,
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
    changes = {f"blocks.0.attn.{hook}": CHANGES[f"blocks.0.attn.{hook}"] for hook in ("hook_z", "hook_q")}
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


def test_a_second_function_at_a_hook_sees_the_replacement_of_the_first(model: attn.TextModel) -> None:
    for hook in ("hook_resid_pre", "attn.hook_q", "attn.hook_k", "attn.hook_v", "attn.hook_pattern", "attn.hook_z"):
        name, seen = f"blocks.0.{hook}", []
        attn.lens.run_with_hooks(model, IDS, {hook: CHANGES[name], name: lambda value, seen=seen: seen.append(value)})  # the first: all layers
        (plain,) = attn.lens.trace(model, IDS, [name]).values()
        assert near(seen[0], CHANGES[name](plain)), hook


def test_negative_layers_count_from_the_end(model: attn.TextModel) -> None:
    (last,) = attn.lens.trace(model, IDS, ["blocks.1.attn.hook_z"]).values()
    cache = attn.lens.trace(model, IDS, ["blocks.-1.attn.hook_z"])
    assert list(cache) == ["blocks.1.attn.hook_z"]
    assert numpy.array_equal(cache["blocks.1.attn.hook_z"], last)
    change = CHANGES["blocks.0.attn.hook_pattern"]
    first = attn.lens.run_with_hooks(model, IDS, {"blocks.0.attn.hook_pattern": change}).logits
    assert numpy.array_equal(attn.lens.run_with_hooks(model, IDS, {"blocks.-2.attn.hook_pattern": change}).logits, first)


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama", "tiny-qwen3", "tiny-bert", "tiny-albert", "tiny-modernbert", "tiny-deberta"])
def test_patches_of_queries_keys_values_and_weights(name: str, weights: Any) -> None:
    """What a run computes may be patched into it without a change, and what another run computes gives the results of that."""
    model = attn.TextModel.load(testdata / "models" / name, weights=weights)
    inputs, other = [[5, 6, 7, 8], [9, 10, 3, 3]], [[11, 12, 13, 14], [15, 16, 3, 3]]
    mask = [[1, 1, 1, 1], [1, 1, 0, 0]]

    def run(of: Any, **options: Any) -> Any:
        names: Any = ["q_proj", "k_proj", "v_proj", "context", "merged", "weights", "weighted_values"]
        return model(of, mask, output_attentions=True, output_hidden_states=True, trace=names, **options)

    def close(got: numpy.ndarray, expected: numpy.ndarray) -> bool:
        return numpy.allclose(got, expected, rtol=1e-4, atol=1e-5 * numpy.abs(expected).max())

    plain, foreign = run(inputs), run(other)
    parts = ("q_proj", "k_proj", "v_proj")
    for part in parts:
        same = run(inputs, patch=attn.LayerPatch(0, **{part: plain.trace[0][part]}))
        assert numpy.array_equal(same.last_hidden_state, plain.last_hidden_state), part
        changed = run(inputs, patch=attn.LayerPatch(0, **{part: foreign.trace[0][part]}))
        assert numpy.array_equal(changed.trace[0][part], foreign.trace[0][part]), part
        assert numpy.array_equal(changed.hidden_states[0], plain.hidden_states[0])
        assert not close(changed.last_hidden_state, plain.last_hidden_state), part
        assert numpy.array_equal(changed.attentions[0], plain.attentions[0]) == (part == "v_proj")
    # All three make the heads of the other run.
    whole = run(inputs, patch=attn.LayerPatch(0, **{part: foreign.trace[0][part] for part in parts}))
    assert numpy.array_equal(whole.trace[0]["merged"], foreign.trace[0]["merged"])
    # Weights: those of the other run with the values of the other run as well.
    same = run(inputs, patch=attn.LayerPatch(0, weights=plain.attentions[0]))
    assert close(same.last_hidden_state, plain.last_hidden_state)
    changed = run(inputs, patch=attn.LayerPatch(0, weights=foreign.attentions[0], v_proj=foreign.trace[0]["v_proj"]))
    assert close(changed.trace[0]["merged"], foreign.trace[0]["merged"])
    assert close(changed.trace[0]["context"], foreign.trace[0]["context"])
    assert close(changed.trace[0]["weighted_values"], foreign.trace[0]["weighted_values"])
    assert numpy.array_equal(changed.attentions[0], foreign.attentions[0])
    assert numpy.array_equal(changed.trace[0]["weights"], foreign.attentions[0])


def test_patches_follow_padding_before_the_tokens() -> None:
    """A decoder computes such texts in another order, and results and patches are in the caller's."""
    model = attn.TextModel.load(testdata / "models" / "tiny-llama")
    ids, mask = [[0, 0, 5, 6, 7], [8, 9, 10, 11, 12]], [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]
    alone = model([[5, 6, 7]], output_attentions=True, trace=["v_proj", "q_proj"])
    assert alone.attentions is not None
    assert alone.trace is not None
    rng = numpy.random.default_rng(5)
    plain = model(ids, mask, output_attentions=True, trace=["q_proj", "v_proj"])
    assert plain.attentions is not None
    assert plain.trace is not None
    for name, of_alone, of_batch in (
        ("weights", alone.attentions[0], plain.attentions[0].copy()),
        ("q_proj", alone.trace[0]["q_proj"], plain.trace[0]["q_proj"].copy()),
        ("v_proj", alone.trace[0]["v_proj"], plain.trace[0]["v_proj"].copy()),
    ):
        change = rng.standard_normal(of_alone.shape, numpy.float32)
        if name == "weights":
            of_batch[:1, :, 2:, 2:] = change
        else:
            of_batch[:1, 2:] = change
        expected = model([[5, 6, 7]], patch=attn.LayerPatch(0, **{name: change})).last_hidden_state
        got = model(ids, mask, patch=attn.LayerPatch(0, **{name: of_batch})).last_hidden_state
        assert near(got[:1, 2:], expected), name


def test_values_of_a_cache_can_be_patched_and_weights_cannot() -> None:
    model = attn.TextModel.load(testdata / "models" / "tiny-llama")
    whole = model([[5, 6, 7, 8]], trace=["v_proj"])
    assert whole.trace is not None
    values = whole.trace[0]["v_proj"] * 2
    expected = model([[5, 6, 7, 8]], patch=attn.LayerPatch(0, v_proj=values)).last_hidden_state
    cache = model.create_cache(max_length=4)
    model([[5, 6, 7]], cache=cache, patch=attn.LayerPatch(0, v_proj=values[:, :3]))
    assert near(model([[8]], cache=cache, patch=attn.LayerPatch(0, v_proj=values[:, 3:])).last_hidden_state, expected[:, 3:])
    cache = model.create_cache(max_length=4)
    with pytest.raises(attn.UnsupportedError, match=r"patch\.weights .*expected a forward without a cache"):
        model([[5, 6]], cache=cache, patch=attn.LayerPatch(0, weights=numpy.zeros((1, 4, 2, 2))))


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
        (attn.ShapeError, r"patch\.q_proj has shape \(1,5,24\), expected \(1,6,24\)", attn.LayerPatch(1, q_proj=state[:, 1:])),
        (attn.ShapeError, r"patch\.weights has shape \(4,6,6\), expected \(1,4,6,6\)", attn.LayerPatch(1, weights=numpy.zeros((4, 6, 6)))),
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
        (attn.OutOfRangeError, r"names\[0\] is blocks\.2\.hook_mlp_out, expected a layer from 0 to 1, or from -2 to -1", lambda: trace(model, IDS, ["blocks.2.hook_mlp_out"])),
        (attn.OutOfRangeError, r"blocks\.-3\.hook_mlp_out", lambda: trace(model, IDS, ["blocks.-3.hook_mlp_out"])),
        (attn.UnsupportedError, "model_type is bert, expected one of gpt2", lambda: trace(bert, IDS, ["hook_mlp_out"])),
        (attn.ShapeError, "text", lambda: trace(model, [IDS], ["hook_mlp_out"])),
        (attn.ArgumentError, "at least one token", lambda: run(model, [], {"hook_mlp_out": same})),
        (attn.OutOfRangeError, "400", lambda: run(model, [400], {"hook_mlp_out": same})),
        (attn.UnsupportedError, "hook_resid_pre, attn.hook_q, attn.hook_k, attn.hook_v, attn.hook_pattern, attn.hook_z, hook_resid_post", lambda: run(model, IDS, {"blocks.0.hook_mlp_out": same})),
        (attn.UnsupportedError, "last layer", lambda: run(model, IDS, {"blocks.1.hook_resid_post": same})),
        (attn.ShapeError, r"hook_z'\].* expected shape \(1, 6, 4, 6\)", lambda: run(model, IDS, {"attn.hook_z": lambda z: z[:, 1:]})),
        (attn.ShapeError, r"pattern'\].* expected shape \(1, 4, 6, 6\)", lambda: run(model, IDS, {"attn.hook_pattern": lambda p: p[0]})),
        (attn.DtypeError, "complex", lambda: run(model, IDS, {"attn.hook_z": lambda z: z * 1j})),
        (attn.ArgumentError, r"hooks\['blocks\.0\.attn\.hook_z'\] is int", lambda: run(model, IDS, {"attn.hook_z": 3})),  # type: ignore[dict-item]
        (attn.ArgumentError, "run_with_hooks: hooks is missing", lambda: run(model, IDS)),  # type: ignore[call-arg]
    ]
    for kind, words, call in refusals:
        with pytest.raises(kind, match=words):
            call()
    with pytest.raises(ZeroDivisionError):
        run(model, IDS, {"hook_resid_pre": lambda x: x[0, 0, 0] / (1 // 0)})
