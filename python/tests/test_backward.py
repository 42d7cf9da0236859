"""Gradients of layers, compared with torch.autograd."""

from typing import Any

import attn
import numpy
import pytest

from golden import Case, cases

rng = numpy.random.default_rng(12)


def forward_of(own: Case, forwards: dict[str, Case]) -> Case:
    return forwards[own["name"]] if "of" in own.entry else own


def check(own: Case, layer: Any, result: Any) -> None:
    got = {f"state.{name}": array for name, array in layer.gradients().items()}
    for name in ("grad_query", "grad_key", "grad_value", "grad_x"):
        if getattr(result, name, None) is not None:
            got[name] = getattr(result, name)
    for key, value in (result.trace or {}).items():
        got |= {f"trace.{key}": value} if isinstance(key, str) else {f"trace.{key}.{name}": array for name, array in value.items()}
    assert set(got) == set(own["expected"])
    for what in own["expected"]:
        own.check(what, got[what])


def test_gradients_of_multi_head_attention_agree_with_torch() -> None:
    forwards = {case["name"]: case for case in cases("multi_head_attention", "multi_head_attention")}
    count = 0
    for own in cases("layers_backward", "multi_head_attention_backward"):
        case = forward_of(own, forwards)
        layer = attn.MultiHeadAttention(**case.options("module"))
        layer.load_state_dict(case.state())
        inputs, options = case.inputs(), case.options()
        if "key" in inputs:
            inputs.setdefault("value", inputs["key"])
        layer(**inputs, **options, for_backward=True)
        trace = [what.removeprefix("trace.") for what in own["expected"] if what.startswith("trace.")]
        check(own, layer, layer.backward(own.tensor("grad"), trace=trace))
        count += 1
    assert count == 127


def test_gradients_of_encoders_agree_with_torch() -> None:
    forwards = {case["name"]: case for case in cases("transformer", "transformer_encoder", "transformer_encoder_layer")}
    count = 0
    for own in cases("encoder_backward", "transformer_encoder_layer_backward", "transformer_encoder_backward"):
        case = forward_of(own, forwards)
        module, options = case.options("module"), case.options()
        module.pop("dropout", None)  # applies to training only
        if "rotary" in module:  # not an option in Python
            continue
        layer = (attn.TransformerEncoderLayer if "layer" in own["op"] else attn.TransformerEncoder)(**module)
        layer.load_state_dict(case.state())
        trace = options.pop("trace", {})
        asked = {"trace": trace.get("names", True), "trace_layers": trace.get("layers")} if trace else {}
        layer(case.tensor("x"), **options, for_backward=True)
        check(own, layer, layer.backward(own.tensor("grad"), **asked))
        count += 1
    assert count > 120


@pytest.fixture
def layer() -> attn.TransformerEncoderLayer:
    return attn.TransformerEncoderLayer(16, 4, 32, activation="gelu")


def test_gradient_descent_reduces_the_loss(layer: attn.TransformerEncoderLayer) -> None:
    x, wanted = rng.standard_normal((2, 2, 5, 16), numpy.float32)
    losses = []
    for _ in range(20):
        layer.zero_grad()
        error = layer(x, for_backward=True).output - wanted
        losses.append(float((error**2).mean()))
        layer.backward(2 * error / error.size)
        steps = layer.gradients()
        layer.load_state_dict({name: array - 0.1 * steps[name] for name, array in layer.state_dict().items()})
    assert all(after < before for before, after in zip(losses, losses[1:], strict=False))


def test_gradients_accumulate_until_they_are_discarded(layer: attn.TransformerEncoderLayer) -> None:
    x, grad = rng.standard_normal((2, 3, 16), numpy.float32)

    def once() -> attn.EncoderGradients:
        layer(x, for_backward=True)
        return layer.backward(grad)

    assert layer.gradients() == {}
    first = once()
    one = layer.gradients()
    assert numpy.array_equal(once().grad_x, first.grad_x)
    assert all(numpy.array_equal(array, 2 * one[name]) for name, array in layer.gradients().items())
    layer.zero_grad()
    assert layer.gradients() == {}
    once()
    layer.initialize(seed=3)
    assert layer.gradients() == {}


def test_the_number_of_threads_does_not_change_the_result(threads: int) -> None:
    x, grad = rng.standard_normal((2, 3, 33, 32), numpy.float32)
    results = []
    for count in (1, threads):
        layer = attn.MultiHeadAttention(32, 4, threads=count)
        layer(x, is_causal=True, for_backward=True)
        results.append((layer.backward(grad).grad_query, layer.gradients()))
    assert numpy.array_equal(results[0][0], results[1][0])
    assert all(numpy.array_equal(array, results[1][1][name]) for name, array in results[0][1].items())


def test_backward_requires_a_forward_for_backward(layer: attn.TransformerEncoderLayer) -> None:
    x = rng.standard_normal((3, 16), numpy.float32)
    layer(x)
    with pytest.raises(attn.ArgumentError, match="for_backward"):
        layer.backward(x)
    layer(x, for_backward=True)
    with pytest.raises(attn.ShapeError):
        layer.backward(x[:2])
    layer.backward(x)
    with pytest.raises(attn.ArgumentError):
        layer.backward(x)
    layer.quantize()
    with pytest.raises(attn.UnsupportedError):
        layer(x, for_backward=True)
        layer.backward(x)
