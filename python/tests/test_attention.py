"""Attention and layers, compared with torch."""

import attn
import numpy
import pytest

from golden import Case, cases


def check(case: Case, result: attn.AttentionResult) -> None:
    for what in case["expected"]:
        # Reference cases name some traces as results.
        if what == "output":
            got = result.output
        elif what == "weights":
            got = result.weights
        else:
            got = result.trace[what]
        # torch drops the dimension of averaged heads.
        if what == "weights" and case["options"].get("averageWeights") and got.size == case.tensor("expected.weights").size:
            got = got.reshape(case.tensor("expected.weights").shape)
        case.check(what, got)


@pytest.mark.parametrize("file", ["attention", "reference_cases"])
def test_scaled_dot_product_attention_agrees_with_torch(file: str) -> None:
    count = 0
    for case in cases(file, "scaled_dot_product_attention"):
        inputs = case.inputs()
        check(case, attn.scaled_dot_product_attention(inputs["query"], inputs["key"], inputs["value"], **case.options()))
        count += 1
    assert count == {"attention": 114, "reference_cases": 9}[file]


@pytest.mark.parametrize("file", ["multi_head_attention", "reference_cases"])
def test_multi_head_attention_agrees_with_torch(file: str) -> None:
    count = 0
    for case in cases(file, "multi_head_attention"):
        layer = attn.MultiHeadAttention(**case.options("module"))
        layer.load_state_dict(case.state())
        inputs = case.inputs()
        if "key" in inputs:
            inputs.setdefault("value", inputs["key"])
        check(case, layer(**inputs, **case.options()))
        for name, array in layer.state_dict().items():
            if name in case["state"]:
                assert numpy.array_equal(array, case.state()[name])
        count += 1
    assert count == {"multi_head_attention": 137, "reference_cases": 4}[file]


def test_encoders_agree_with_torch() -> None:
    count = 0
    for case in cases("transformer", "transformer_encoder", "transformer_encoder_layer"):
        module, options, state = case.options("module"), case.options(), case.state()
        module.pop("dropout", None)  # applies to training only
        trace = options.pop("trace", {})
        if trace:
            options |= {"trace": trace.get("names", True), "trace_layers": trace.get("layers")}
        encoder = (attn.TransformerEncoderLayer if case["op"] == "transformer_encoder_layer" else attn.TransformerEncoder)(**module)
        encoder.load_state_dict(state)
        result = encoder(case.tensor("x"), **options)
        for what in case["expected"]:
            kind, *place = what.split(".")
            if kind == "output":
                case.check(what, result.output)
            elif kind == "attentions":
                case.check(what, result.attentions[int(place[0])])
            elif kind == "hiddenStates":
                case.check(what, result.hidden_states[int(place[0])])
            else:
                case.check(what, result.trace[int(place[0])][place[1]])
        count += 1
    assert count == 98 + 31


def test_the_number_of_threads_does_not_change_the_result(threads: int) -> None:
    rng = numpy.random.default_rng(1)
    q, k, v = (rng.standard_normal((2, 4, 65, 32), numpy.float32) for _ in range(3))
    one = attn.scaled_dot_product_attention(q, k, v, need_weights=True)
    many = attn.scaled_dot_product_attention(q, k, v, need_weights=True, threads=threads)
    assert numpy.array_equal(one.output, many.output)
    assert numpy.array_equal(one.weights, many.weights)


def test_past_keys_and_values_precede_the_new_ones() -> None:
    layer = attn.MultiHeadAttention(16, 4)
    x = numpy.random.default_rng(2).standard_normal((2, 5, 16), numpy.float32)
    whole = layer(x, is_causal=True, output_present=True)
    assert whole.present.key.shape == (2, 4, 5, 4)
    first = layer(x[:, :3], is_causal=True, output_present=True)
    rest = layer(x[:, 3:], is_causal=True, past=first.present)
    assert numpy.array_equal(whole.output[:, 3:], rest.output)
    assert numpy.array_equal(whole.present.value, rest.present.value)


def test_the_same_seed_drops_the_same_weights() -> None:
    x = numpy.random.default_rng(3).standard_normal((4, 64, 16), numpy.float32)
    outputs = [attn.scaled_dot_product_attention(x, x, x, dropout=0.5, seed=seed).output for seed in (1, 1, 2)]
    assert numpy.array_equal(outputs[0], outputs[1])
    assert not numpy.array_equal(outputs[0], outputs[2])


def test_the_seed_determines_initial_weights() -> None:
    one, other = attn.TransformerEncoder(8, 2, 2, 16), attn.TransformerEncoder(8, 2, 2, 16)
    assert all(numpy.array_equal(array, other.state_dict()[name]) for name, array in one.state_dict().items())
    other.initialize("normal", seed=7, std=0.5)
    weights = numpy.concatenate([array.ravel() for name, array in other.state_dict().items() if array.ndim == 2])
    assert abs(weights.std() - 0.5) < 0.05
    assert one.parameter_count == sum(array.size for array in one.state_dict().values())
    assert one.parameter_shapes() == {name: array.shape for name, array in one.state_dict().items()}


def test_a_quantized_layer_is_close_to_the_float32_layer() -> None:
    layer = attn.MultiHeadAttention(64, 4)
    x = numpy.random.default_rng(4).standard_normal((2, 9, 64), numpy.float32)
    exact = layer(x).output
    layer.quantize()
    assert layer.is_quantized
    rounded = layer(x).output
    assert not numpy.array_equal(exact, rounded)
    assert numpy.abs(exact - rounded).max() < 0.02


def test_a_mismatched_state_dict_changes_nothing() -> None:
    layer = attn.MultiHeadAttention(8, 2)
    before = layer.state_dict()
    state = {"in_proj_weight": numpy.zeros((24, 8)), "in_proj_bias": numpy.zeros(23), "extra": numpy.zeros(1)}
    with pytest.raises(attn.MismatchError) as caught:
        layer.load_state_dict(state)
    assert caught.value.detail["missing"] == ["out_proj.bias", "out_proj.weight"]
    assert caught.value.detail["unexpected"] == ["extra"]
    assert len(caught.value.detail["mis_shaped"]) == 1
    assert all(numpy.array_equal(array, before[name]) for name, array in layer.state_dict().items())
    layer.load_state_dict({"in_proj_bias": numpy.ones(24), "extra": numpy.zeros(1)}, strict=False)
    assert (layer.state_dict()["in_proj_bias"] == 1).all()
