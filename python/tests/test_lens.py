"""attn.lens: shapes, sums, the model's own numbers, refusals. The C++ tests compare with a reference."""

from collections.abc import Callable

import attn
import numpy as np
import pytest

from golden import testdata

IDS = [20, 131, 7, 250, 64, 99]
OTHERS = [20, 88, 7, 250, 301, 99]
DECODERS = ["tiny-gpt2", "tiny-llama", "tiny-llama-3", "tiny-mistral", "tiny-qwen2", "tiny-qwen3", "tiny-llama-yarn"]


@pytest.fixture(scope="module")
def models() -> dict[str, attn.TextModel]:
    return {name: attn.TextModel.load(testdata / "models" / name) for name in [*DECODERS, "tiny-bert", "tiny-bert-mlm", "tiny-neox"]}


@pytest.mark.parametrize("name", DECODERS)
def test_the_last_layer_of_the_logit_lens_is_the_model(models: dict[str, attn.TextModel], name: str) -> None:
    model = models[name]
    output = model([IDS], output_hidden_states=True)
    assert model.unembed(output.last_hidden_state).tobytes() == output.logits.tobytes()
    every_second = model.unembed(output.last_hidden_state[0, ::2])
    assert every_second.tobytes() == np.ascontiguousarray(output.logits[0, ::2]).tobytes()
    result = attn.lens.logit_lens(model, IDS, top_k=3)
    assert (result.layers, result.positions) == ([0, 1, 2], list(range(6)))
    assert result.tokens == [model.id_to_token(i) for i in IDS]
    for logits, row in zip(output.logits[0], result.predictions[2], strict=True):
        assert [each.id for each in row] == np.argsort(-logits, kind="stable")[:3].tolist()
        assert [each.logit for each in row] == [logits[each.id] for each in row]
        assert all(each.token == (model.id_to_token(each.id) or "") for each in row)
        assert row[0].probability == pytest.approx(1 / np.exp(logits.astype(float) - float(logits.max())).sum(), rel=1e-6)
    some = attn.lens.logit_lens(model, np.array(IDS), layers=[1], positions=[3], top_k=3)
    assert some.predictions == [[result.predictions[1][3]]]


@pytest.mark.parametrize("name", DECODERS)
def test_the_parts_of_a_logit_add_up(models: dict[str, attn.TextModel], name: str) -> None:
    model = models[name]
    logits = model([IDS]).logits[0].astype(float)
    for target, contrast, position in ((5, 41, None), (300, None, 2), (77, 12, 0)):
        parts = attn.lens.logit_attribution(model, IDS, target, contrast=contrast, position=position)
        row = logits[5 if position is None else position]
        assert parts.position == (5 if position is None else position)
        assert parts.value == pytest.approx(row[target] - (0 if contrast is None else row[contrast]), abs=1e-6)
        assert (parts.heads.shape, parts.mlps.shape, parts.heads.dtype) == ((2, 4), (2,), np.float32)
        total = parts.embedding + parts.heads.sum(dtype=float) + parts.mlps.sum(dtype=float) + parts.biases
        assert abs(total - parts.value) <= 1e-4 * max(abs(parts.value), 1e-2)


@pytest.mark.parametrize("name", DECODERS)
def test_patches_recover_what_differs(models: dict[str, attn.TextModel], name: str) -> None:
    model = models[name]
    corrupted = [20, 88, *IDS[2:]]
    result = attn.lens.patch_activations(model, IDS, corrupted, answer=5, contrast=41)
    assert result.recovered[0].tolist() == [0, 1, 0, 0, 0, 0]
    assert result.positions == list(range(6)) and result.corrupted_tokens[1] == model.id_to_token(88)
    states = [model([ids], output_hidden_states=True, output_logits="last") for ids in (IDS, corrupted)]
    clean, other = (float(state.logits[0, 0, 5]) - float(state.logits[0, 0, 41]) for state in states)
    assert (result.clean, result.corrupted) == (clean, other)
    patched = states[1].hidden_states[1].copy()
    patched[0, 2] = states[0].hidden_states[1][0, 2]
    logits = model([corrupted], patch=attn.LayerPatch(1, hidden_state=patched), output_logits="last").logits[0, 0].astype(float)
    assert result.recovered[1, 2] == np.float32((logits[5] - logits[41] - other) / (clean - other) + 0.0)
    heads = attn.lens.patch_activations(model, IDS, OTHERS, answer=5, site="head")
    assert heads.positions is None and heads.recovered.shape == (2, 4)
    some = attn.lens.patch_activations(model, IDS, OTHERS, answer=5, site="mlp", positions=[4, 1])
    whole = attn.lens.patch_activations(model, IDS, OTHERS, answer=5, site="mlp")
    assert some.recovered.tolist() == whole.recovered[:, [4, 1]].tolist()
    # The slope of a small step towards the clean residual.
    estimate = attn.lens.attribution_patching(model, IDS, corrupted, answer=5, contrast=41)
    assert (estimate.clean, estimate.corrupted, estimate.positions) == (result.clean, result.corrupted, result.positions)
    for layer in (0, 1):
        before, after = (state.hidden_states[layer] for state in reversed(states))
        for i in range(6):
            values = []
            for share in (0.01, -0.01):
                moved = before.copy()
                moved[0, i] += np.float32(share) * (after[0, i] - before[0, i])
                row = model([corrupted], patch=attn.LayerPatch(layer, hidden_state=moved), output_logits="last").logits[0, 0]
                values.append(float(row[5]) - float(row[41]))
            slope = (values[0] - values[1]) / 0.02 / (clean - other)
            assert abs(float(estimate.recovered[layer, i]) - slope) <= 5e-3 * max(1, abs(slope))


def test_head_scores_are_means_of_attention(models: dict[str, attn.TextModel]) -> None:
    model = models["tiny-gpt2"]
    result = attn.lens.head_scores(model)
    half = len(result.ids) // 2
    assert half >= 16 and result.ids[:half] == result.ids[half:]
    assert list(result.scores) == ["previous_token", "duplicate_token", "induction", "first_token"]
    assert attn.lens.head_scores(model, seed=1).ids != result.ids == attn.lens.head_scores(model, seed=0).ids
    attentions = model([result.ids], output_attentions=True).attentions
    for layer, weights in enumerate(attentions):
        previous = np.diagonal(weights[0], offset=-1, axis1=1, axis2=2).mean(axis=1)
        assert result.scores["previous_token"][layer] == pytest.approx(previous, rel=1e-5)
        assert result.scores["first_token"][layer] == pytest.approx(weights[0, :, 1:, 0].mean(axis=1), rel=1e-5)
    bert = attn.lens.head_scores(models["tiny-bert"], kinds=["first_token"], text="she is good")
    assert list(bert.scores) == ["first_token"] and bert.scores["first_token"].shape == (2, 4)


def test_bad_arguments_are_refused(models: dict[str, attn.TextModel]) -> None:
    model, bert = models["tiny-gpt2"], models["tiny-bert"]
    lens, parts, patch, heads = attn.lens.logit_lens, attn.lens.logit_attribution, attn.lens.patch_activations, attn.lens.head_scores
    refusals: list[tuple[type[attn.AttnError], str, Callable[[], object]]] = [
        (attn.ConfigError, "top_k", lambda: lens(model, IDS, top_k=0)),
        (attn.OutOfRangeError, r"layers\[0\]", lambda: lens(model, IDS, layers=[3])),
        (attn.ArgumentError, "at least one token", lambda: lens(model, "")),
        (attn.ShapeError, "token ids", lambda: lens(model, [IDS])),
        (attn.DtypeError, "text", lambda: lens(model, [0.5])),
        (attn.OutOfRangeError, "400", lambda: lens(model, [400])),
        (attn.UnsupportedError, "text-generation", lambda: lens(bert, "x")),
        (attn.UnsupportedError, "gpt2, llama", lambda: lens(models["tiny-neox"], IDS)),
        (attn.OutOfRangeError, "316", lambda: parts(model, IDS, 317)),
        (attn.OutOfRangeError, "single token", lambda: parts(model, IDS, "The old man")),
        (attn.ArgumentError, "6 tokens", lambda: patch(model, IDS, [1, 2], answer=5)),
        (attn.ArgumentError, "both", lambda: patch(model, IDS, IDS, answer=5)),
        (attn.ConfigError, "residual", lambda: patch(model, IDS, OTHERS, answer=5, site="heads")),
        (attn.ArgumentError, "positions", lambda: patch(model, IDS, OTHERS, answer=5, site="head", positions=[1])),
        (attn.ConfigError, "induction", lambda: heads(model, kinds=["inductive"])),
        (attn.ArgumentError, "repeats", lambda: heads(model, text=[1, 2, 3])),
        (attn.UnsupportedError, "text-generation", lambda: bert.unembed(np.zeros((1, 24), np.float32))),
        (attn.ShapeError, "24", lambda: model.unembed(np.zeros((1, 23), np.float32))),
    ]
    for kind, words, call in refusals:
        with pytest.raises(kind, match=words):
            call()
