"""Refusals: the class of the error, and a message that names the argument."""

import copy
import errno
import inspect
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attn
import numpy
import pytest

from golden import testdata

models = testdata / "models"
x = numpy.ones((2, 3), numpy.float32)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All public functions, methods and constructors."""
    for name in attn.__all__:
        thing = getattr(attn, name)
        if inspect.isclass(thing) and thing.__module__ == "attn._attn":
            for member in vars(thing):
                if (not member.startswith("_") or member == "__call__") and callable(getattr(thing, member)):
                    yield f"{name}.{member}", getattr(thing, member)
            yield name, thing
        elif inspect.isfunction(thing):
            yield name, thing
    yield from ((f"lens.{name}", getattr(attn.lens, name)) for name in attn.lens.__all__)


FUNCTIONS = dict(functions())
WITHOUT_CONSTRUCTOR = ("Mask", "TextModel", "ImageModel", "KeyValueCache", "Tokenizer", "WordEmbeddings")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_signature(name: str) -> None:
    if name in WITHOUT_CONSTRUCTOR:
        return
    signature = inspect.signature(FUNCTIONS[name])
    for each in signature.parameters.values():
        assert each.name == "self" or each.annotation is not each.empty
    assert "\\" not in str(signature)


def test_a_signature_has_the_defaults_and_types_of_the_stub() -> None:
    parameters = inspect.signature(attn.TextModel.embed).parameters
    assert list(parameters)[:3] == ["self", "texts", "max_length"]
    assert parameters["batch_size"].default == 32
    assert str(parameters["max_length"]) == "max_length: int | None = None"
    assert parameters["batch_size"].kind == inspect.Parameter.KEYWORD_ONLY
    assert list(inspect.signature(attn.MultiHeadAttention).parameters)[:2] == ["embed_dim", "num_heads"]
    assert inspect.signature(attn.TextModel.answer).return_annotation == "list[attn.Answer] | list[list[attn.Answer]]"
    signature = inspect.signature(attn.TextModel.embed)
    assert pickle.loads(pickle.dumps(signature)) == copy.deepcopy(signature) == signature.replace() == signature
    assert not hasattr(inspect.signature(attn.softmax), "no_such_part")
    help_text = inspect.getdoc(attn.TextModel.embed)
    assert help_text is not None
    assert help_text.startswith("Computes one vector per text")
    assert pickle.loads(pickle.dumps(attn.softmax)) is copy.copy(attn.softmax) is attn.softmax


def refusal(call: Callable[[], object], kind: type[attn.AttnError], *parts: str) -> attn.AttnError:
    with pytest.raises(kind) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
    assert "incompatible" not in str(caught.value)
    assert "bad_cast" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.detail) == (type(caught.value), str(caught.value), caught.value.detail)
    return caught.value


@pytest.mark.parametrize(
    ("function", "name", "help"),
    [
        ("TextModel.embed", "normalize_embeddings", "Write normalize"),
        ("TextModel.embed", "device", "Leave it out: attn computes on the CPU"),
        ("TextModel.embed", "batchsize", "Did you mean batch_size?"),
        ("TextModel.classify_tokens", "aggregation_strategy", "Write aggregation"),
        ("TextModel.load", "torch_dtype", "Write weights='float32' or weights='int8'"),
        ("TextModel.fine_tune", "num_train_epochs", "Write epochs"),
        ("scaled_dot_product_attention", "attn_mask", "Write mask=attn.Mask.attend(m) if True allows a key"),
        ("scaled_dot_product_attention", "dropout_p", "Write dropout"),
        ("MultiHeadAttention", "batch_first", "Leave it out: arrays are always (B,L,E)"),
        ("softmax", "axis", "Write dim"),
    ],
)
def test_an_unknown_argument_is_named_with_a_hint(function: str, name: str, help: str) -> None:
    error = refusal(lambda: FUNCTIONS[function](**{name: 1}), attn.UnknownArgumentError, f": {name} is unknown, expected one of ", help)
    assert isinstance(error, TypeError)
    assert isinstance(error, attn.ArgumentError)
    assert (error.code, error.detail["argument"], error.detail["got"]) == ("ARGUMENT", name, "unknown")
    assert (error.help or "").startswith(help)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_names_an_unknown_argument(name: str, sentiment: attn.TextModel) -> None:
    if name in WITHOUT_CONSTRUCTOR:
        refusal(lambda: FUNCTIONS[name](1), attn.ArgumentError, "Write ")
        return
    if name == "TextModel.apply_chat_template":  # its further arguments are variables of the template
        return
    refusal(lambda: FUNCTIONS[name](no_such_argument=1), attn.UnknownArgumentError, "no_such_argument is unknown")


def test_missing_and_surplus_arguments_are_named(sentiment: attn.TextModel) -> None:
    refusal(sentiment.embed, attn.ArgumentError, "embed: texts is missing, expected a str or a list")
    refusal(lambda: attn.scaled_dot_product_attention(x, x), attn.ArgumentError, ": value is missing, expected an array")  # type: ignore[call-arg]
    refusal(lambda: attn.scaled_dot_product_attention(x, x, x, x), attn.ArgumentError, "is 4, expected at most 3. Write mask=")  # type: ignore[call-arg]
    refusal(lambda: attn.MultiHeadAttention(8), attn.ArgumentError, "MultiHeadAttention: num_heads is missing, expected a whole number")  # type: ignore[call-arg]
    refusal(lambda: attn.softmax(x, x=x), attn.ArgumentError, "softmax: x is given by position and by name")  # type: ignore[misc]
    refusal(lambda: attn.show(sentiment), attn.ArgumentError, "show: text is missing, expected a value")  # type: ignore[call-overload]
    refusal(lambda: attn.show(sentiment, "a", heads=1), attn.UnknownArgumentError, "heads is unknown", "Did you mean head?")  # type: ignore[call-overload]
    refusal(lambda: attn.show(sentiment, text="a"), attn.ArgumentError, "show: text is given by name, expected a value by position. Leave out text=")  # type: ignore[call-overload]
    refusal(lambda: attn.show(x, "ab", keys="abc").save(), attn.ArgumentError, "save: path is missing")  # type: ignore[call-arg]
    refusal(lambda: attn.TextModel.embed(3, "a"), attn.ArgumentError, "embed: self is int, expected a TextModel")  # type: ignore[arg-type]


WRONG = [None, object(), "\ud800", b"a", {"a": 1}, [], [None], 2**70, -1, 0.5, float("nan"), lambda *_: None, 1j, ["\ud800"], (1, 2, 3)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_value_of_any_argument_is_accepted_or_refused_by_an_error_of_attn(name: str, tmp_path: Path) -> None:
    """Without a wrong value the call works; its effect is not checked here."""
    if name in WITHOUT_CONSTRUCTOR or name == "set_num_threads":
        return
    left_out = ("length", "width", "num_heads", "key_length", "max_new_tokens", "epochs", "steps", "num_layers", "dim_feedforward")
    left_out += ("num_embeddings", "embedding_dim")
    needed: dict[str, Any] = {"embed_dim": 8, "nhead": 2, "d_model": 8, "num_layers": 1, "num_heads": 2, "length": 3, "width": 4}
    needed |= {"path": tmp_path / "none", "x": x, "weight": x, "query": x, "key": x, "value": x, "mask": x, "grad": x, "tensors": {"a": x}}
    needed |= {"texts": ["a"], "text": "a", "question": "a", "context": "a", "documents": ["a"], "ids": [1], "id": 1, "token": "a", "prompt": "a"}
    needed |= {"input_ids": [[1]], "name": "gelu", "hidden_states": x, "examples": [("a", 1)], "state_dict": {}, "messages": [], "layer": 0}
    needed |= {"images": numpy.zeros((8, 8, 3), numpy.uint8), "pixel_values": numpy.zeros((1, 3, 32, 32))}
    needed |= {"clean": [5, 6], "corrupted": [5, 7], "answer": 3, "target": 3}
    needed |= {"num_embeddings": 5, "embedding_dim": 2, "a": 1, "b": 2, "c": 3, "k": 1}
    function = FUNCTIONS[name]
    objects: dict[str, Callable[[], Any]] = {
        "TextModel": lambda: attn.TextModel.load(models / "tiny-gpt2"),
        "ImageModel": lambda: attn.ImageModel.load(testdata / "vision" / "tiny-vit"),
        "MultiHeadAttention": lambda: attn.MultiHeadAttention(8, 2),
        "TransformerEncoder": lambda: attn.TransformerEncoder(8, 2, 1),
        "TransformerEncoderLayer": lambda: attn.TransformerEncoderLayer(8, 2),
        "Embedding": lambda: attn.Embedding(5, 2),
        "Tokenizer": lambda: attn.Tokenizer.from_pretrained(models / "sentiment"),
        "WordEmbeddings": lambda: attn.TextModel.load(models / "tiny-gpt2").word_embeddings,
        "KeyValueCache": lambda: attn.TextModel.load(models / "tiny-gpt2").create_cache(),
    }
    parameters = inspect.signature(function).parameters
    if "self" in parameters:
        needed["self"] = objects[name.partition(".")[0]]()
    for each in ("model", "what"):
        if each in parameters:
            needed[each] = objects["TextModel"]()
    if name.startswith("lens."):
        needed |= {"names": ["blocks.0.hook_resid_pre"], "hooks": {}}
    by_position = [each.name for each in parameters.values() if each.kind == each.POSITIONAL_ONLY]

    def call(changed: dict[str, Any]) -> Any:
        given = {key: each for key, each in (needed | changed).items() if key in parameters}
        made = function(*[given.pop(each) for each in by_position], **given)
        if name == "show":
            made._repr_html_()

    for parameter in parameters.values():
        if parameter.name in ("self", *left_out) or parameter.kind == parameter.VAR_KEYWORD:
            continue
        for value in WRONG:
            if name.endswith(".save_pretrained") and parameter.name == "path" and isinstance(value, str | bytes):
                continue
            try:
                call({parameter.name: value})
            except attn.AttnError as error:
                assert "incompatible" not in str(error)
                assert "bad_cast" not in str(error)


def test_types_of_arguments_are_named(sentiment: attn.TextModel) -> None:
    for call, *parts in (
        (lambda: sentiment.embed("a", batch_size="3"), "embed: batch_size is str, expected a whole number"),
        (lambda: sentiment.embed("a", batch_size=None), "embed: batch_size is NoneType, expected a whole number"),
        (lambda: sentiment.embed("a", prompt="\ud800"), "embed: prompt is a str with lone surrogates, expected a str or None"),
        (lambda: sentiment.embed("a", truncation_side="\ud800"), "truncation_side is a str with lone surrogates, expected 'left', 'right' or None"),
        (lambda: sentiment.embed("a", on_progress=3), "embed: on_progress is 3, expected a function or None"),
        (lambda: sentiment.embed(3), "embed: texts is int, expected a str or a list of them"),
        (lambda: attn.scaled_dot_product_attention(x, x, x, seed=-1), "seed is -1, expected a whole number of at least 0"),
        (lambda: attn.scaled_dot_product_attention(x, x, x, window=3), "window is 3, expected a tuple of a whole number and a whole number or None"),
        (lambda: attn.scaled_dot_product_attention(x, x, x, trace=3), "trace is 3, expected True or False or a list with a str each"),
        (lambda: setattr(sentiment, "threads", "x"), "threads is str, expected a whole number or None"),
        (lambda: sentiment([[1]], patch=3), "TextModel: patch is int, expected a LayerPatch, or a list of LayerPatch"),
        (lambda: attn.write_safetensors({"a": x}, {"a": 3}), "write_safetensors: metadata is dict, expected a dict"),
        (lambda: attn.lens.logit_lens(3, "a"), "logit_lens: model is 3, expected a TextModel"),
        (lambda: attn.TextModel.load(3), "TextModel.load: path is int, expected a str, bytes or os.PathLike"),
        (lambda: attn.TextModel.load(None), "TextModel.load: path is NoneType, expected a str, bytes or os.PathLike"),
        (lambda: attn.read_safetensors(None), "read_safetensors: path is NoneType, expected a str, bytes or os.PathLike"),
        (lambda: attn.TextModel.load("a\0b"), "path is a path with a null byte or lone surrogates"),
    ):
        refusal(call, attn.ArgumentError, *parts)


def test_errors_of_callbacks_and_iterators_pass_unchanged(sentiment: attn.TextModel) -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise TypeError("incompatible function arguments")

    def progress(*_: object) -> None:
        raise MemoryError("mine")

    with pytest.raises(TypeError, match="^incompatible function arguments$"):
        sentiment.embed(texts())
    with pytest.raises(MemoryError, match="^mine$"):
        sentiment.embed("a", on_progress=progress)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        sentiment.embed("a", on_progress=lambda done, total, more: None)  # type: ignore[arg-type, misc]
    with pytest.raises(ValueError, match="invalid literal"):
        sentiment.embed(map(int, ["x"]))  # type: ignore[arg-type]


def test_a_missing_file_is_also_a_file_not_found_error(tmp_path: Path, sentiment: attn.TextModel) -> None:
    for call in (lambda: attn.TextModel.load(tmp_path / "none"), lambda: attn.read_safetensors(tmp_path / "none")):
        error = refusal(call, attn.FormatError, "is missing")
        assert isinstance(error, FileNotFoundError)
        assert isinstance(error, attn.MissingFileError)
        assert (error.errno, error.detail["errno"]) == (errno.ENOENT, errno.ENOENT)
        assert str(error).startswith(f"{error.detail['op']}: ")
        assert error.detail["op"] in ("TextModel.load", "read_safetensors")
        assert pickle.loads(pickle.dumps(error)).errno == errno.ENOENT


def test_other_errors_of_files_are_no_file_not_found_errors(tmp_path: Path) -> None:
    """Whatever the names in the message are."""
    folder = tmp_path / "not there"
    shutil.copytree(models / "sentiment", folder, ignore=shutil.ignore_patterns("model.safetensors"))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "folder/not there"}}))
    for call in (lambda: attn.TextModel.load(folder), lambda: attn.read_safetensors(folder)):
        assert not isinstance(refusal(call, attn.FormatError, "not there"), OSError)


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no folder that root cannot write")
def test_an_unwritable_target_is_also_an_os_error(sentiment: attn.TextModel) -> None:
    view = attn.show(x, ["a", "b"], keys=["a", "b", "c"])
    for call in (lambda: sentiment.save_pretrained("/proc/none"), lambda: view.save("/proc/none/map.html")):
        error = refusal(call, attn.ArgumentError, "path is unwritable")
        assert isinstance(error, OSError)
        assert isinstance(error, attn.UnwritableError)
        assert error.errno == error.detail["errno"]
        assert error.errno in (errno.ENOENT, errno.EACCES)


def test_too_much_memory_is_an_out_of_memory_error() -> None:
    large = numpy.broadcast_to(numpy.float32(0), (10**7, 4))
    for call in (lambda: attn.linear(large, large), lambda: attn.softmax(numpy.broadcast_to(0.0, (10**7, 10**7)))):
        assert isinstance(refusal(call, attn.OutOfMemoryError), MemoryError)


class Table:
    """Iterates over the names of its columns, as tables of pandas and polars do."""

    columns = ("text", "label")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


class ArrowColumn:
    """Iterates over scalars, which are no texts."""

    def to_pylist(self) -> list[str]:
        return ["a"]

    def __iter__(self) -> Iterator[object]:
        return iter([object()])


class ArrowTable(Table, ArrowColumn):
    pass


def test_tables_and_dicts_are_refused_with_what_to_write(sentiment: attn.TextModel) -> None:
    for call in (sentiment.embed, sentiment.classify, sentiment.tokenize, sentiment.tokenize_words, sentiment.fine_tune):
        refusal(lambda: call(Table()), attn.ArgumentError, "is Table", "=table['name'] for a column")
        refusal(lambda: call(ArrowTable()), attn.ArgumentError, "is ArrowTable", "=table['name'].to_pylist() for a column")
        refusal(lambda: call(ArrowColumn()), attn.ArgumentError, "is ArrowColumn", "=column.to_pylist()")
        refusal(lambda: call({"a": "b"}), attn.ArgumentError, "is dict", "=list(d.values()) for its values")


def test_texts_of_another_shape_are_refused(sentiment: attn.TextModel) -> None:
    for examples in ("positive", None, 3):
        refusal(lambda: sentiment.fine_tune(examples), attn.ArgumentError, "examples is ", "expected a list")
    for examples in (["positive"], [("a", "b", "c")], [("a", None)], [("\ud800", 1)], [(("a", "b", "c"), 1)]):
        refusal(lambda: sentiment.fine_tune(examples), attn.ArgumentError, "examples[0] is ", "expected (text, label)")
    refusal(lambda: sentiment.tokenize([("a", "b", "c")]), attn.ArgumentError, "texts[0] is a tuple of 3, expected a str or a pair of them")
    refusal(lambda: sentiment.classify([("a", "b"), ("a", "b", "c")]), attn.ArgumentError, "texts[1] is a tuple of 3, expected a pair of texts")
    for texts in (("a", "b", "c"), ["a"], ("a", 3), 3):
        refusal(lambda: attn.show(sentiment, texts), attn.ArgumentError, "show: text is ", "expected a text, or a pair of texts")


def test_a_home_folder_may_be_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.fspath(models))
    for path in ("~/sentiment", b"~/sentiment", Path("~/sentiment")):
        assert attn.TextModel.load(path).task == "text-classification"
    assert attn.read_safetensors("~/sentiment/model.safetensors")
