"""Runs the examples in docstrings."""

import doctest
import inspect

import numpy as np
import pytest

import attn


def documented():
    for name in attn.__all__:
        thing = getattr(attn, name)
        yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{member}", getattr(thing, member)) for member in vars(thing) if not member.startswith("_"))


def examples(thing):
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


WITH_EXAMPLES = [name for name, thing in documented() if examples(thing)]


def test_functions_and_layers_have_examples():
    functions = {name for name, thing in documented() if callable(thing) and not inspect.isclass(thing) and "." not in name}
    without = functions - set(WITH_EXAMPLES) - {"get_num_threads", "set_num_threads", "read_safetensors", "write_safetensors", "show"}
    assert not without
    assert {"MultiHeadAttention", "TransformerEncoderLayer", "TransformerEncoder"} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_prints_its_output(name):
    thing = dict(documented())[name]
    text = inspect.getdoc(thing)
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "attn": attn}, name, None, 0)
    failures, tried = doctest.DocTestRunner().run(test)
    assert tried > 0 and failures == 0
