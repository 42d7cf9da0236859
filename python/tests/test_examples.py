"""Runs the examples in docstrings and in examples/python."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attn


def documented():
    for name in attn.__all__:
        thing = getattr(attn, name)
        yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{member}", getattr(thing, member)) for member in vars(thing) if not member.startswith("_"))
    yield from ((f"lens.{name}", getattr(attn.lens, name)) for name in attn.lens.__all__)


def examples(thing):
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


WITH_EXAMPLES = [name for name, thing in documented() if examples(thing)]


def test_functions_and_layers_have_examples():
    functions = {name for name, thing in documented() if callable(thing) and not inspect.isclass(thing) and name.split(".")[0] in ("lens", name)}
    without = functions - set(WITH_EXAMPLES)
    assert not without
    assert {"MultiHeadAttention", "TransformerEncoderLayer", "TransformerEncoder"} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_prints_its_output(name):
    if name == "widget":
        pytest.importorskip("anywidget")
    thing = dict(documented())[name]
    text = inspect.getdoc(thing)
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "attn": attn}, name, None, 0)
    failures, tried = doctest.DocTestRunner().run(test)
    assert tried > 0 and failures == 0


def test_the_program_generate_continues_a_text_and_reports_errors():
    root = Path(__file__).parents[2]

    def run(*args):
        return subprocess.run([sys.executable, root / "examples/python/generate.py", *args], capture_output=True, encoding="utf-8", check=False)

    done = run(root / "testdata/models/tiny-gpt2", "The old man")
    assert done.returncode == 0
    assert done.stdout.startswith("The old man")
    assert done.stdout.endswith("\n\nlength after 24 tokens\nperplexity of your text: 1101.6\n")
    refused = run(root / "testdata/models/tiny-bert", "The old man")
    assert refused.returncode == 1 and "text-generation" in refused.stderr
    assert run().returncode == 2
