"""Makes Python functions of the extension's functions: with a signature, and with errors of attn alone."""

import ast
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar, cast

from ._errors import ArgumentError, AttnError, OutOfMemoryError, UnknownArgumentError, error_of

# Remedies for arguments of other libraries: the first whose key the function has counts.
_INSTEAD: dict[str, dict[str, str]] = {
    "aggregation_strategy": {"aggregation": "Write aggregation"},
    "attention_mask": {"mask": "Write mask=attn.Mask.attend(attention_mask)"},
    "attn_mask": {"mask": "Write mask=attn.Mask.attend(m) if True allows a key, attn.Mask.block(m) if it forbids one, attn.Mask.additive(m) for numbers"},
    "average_attn_weights": {"average_weights": "Write average_weights"},
    "axis": {"dim": "Write dim"},
    "batch_first": {"": "Leave it out: arrays are always (B,L,E)"},
    "cache_dir": {"": "Leave it out: attn reads the folder of Hugging Face's environment variables HF_HUB_CACHE and HF_HOME"},
    "cache_folder": {"": "Leave it out: attn reads the folder of Hugging Face's environment variables HF_HUB_CACHE and HF_HOME"},
    "convert_to_numpy": {"": "Leave it out: results are numpy arrays"},
    "convert_to_tensor": {"": "Leave it out and write torch.from_numpy(result): results are numpy arrays"},
    "device": {"": "Leave it out: attn computes on the CPU"},
    "device_map": {"": "Leave it out: attn computes on the CPU"},
    "dim_model": {"d_model": "Write d_model"},
    "dropout_p": {"dropout": "Write dropout"},
    "dtype": {"weights": "Write weights='float32' or weights='int8'", "": "Leave it out: numbers are float32"},
    "eval_batch_size": {"batch_size": "Write batch_size"},
    "hidden_size": {"embed_dim": "Write embed_dim", "d_model": "Write d_model"},
    "is_split_into_words": {"texts": "Leave it out and call tokenize_words()"},
    "load_in_8bit": {"weights": "Write weights='int8'"},
    "local_files_only": {"": "Leave it out: attn never uses the network"},
    "lr": {"learning_rate": "Write learning_rate"},
    "max_answer_len": {"max_answer_length": "Write max_answer_length"},
    "max_seq_len": {"max_length": "Write max_length"},
    "max_seq_length": {"max_length": "Write max_length"},
    "max_length": {"max_new_tokens": "Write max_new_tokens"},
    "normalize_embeddings": {"normalize": "Write normalize"},
    "num_attention_heads": {"num_heads": "Write num_heads", "nhead": "Write nhead"},
    "num_heads": {"nhead": "Write nhead"},
    "num_beams": {"max_new_tokens": "Leave it out: attn has no beam search"},
    "num_hidden_layers": {"num_layers": "Write num_layers"},
    "num_train_epochs": {"epochs": "Write epochs"},
    "num_workers": {"threads": "Write threads", "": "Leave it out and call attn.set_num_threads()"},
    "output_value": {"texts": "Leave it out: for token vectors write model(model.tokenize(texts)).last_hidden_state"},
    "padding": {"": "Leave it out: attn pads texts to the longest itself"},
    "per_device_train_batch_size": {"batch_size": "Write batch_size"},
    "precision": {"": "Leave it out: vectors are float32"},
    "return_all_scores": {"top_k": "Leave it out: all scores are returned unless top_k is given"},
    "return_dict": {"": "Leave it out: results have their parts as attributes"},
    "return_offsets_mapping": {"texts": "Leave it out: the result always has offsets"},
    "return_tensors": {"": "Leave it out: results are numpy arrays"},
    "sentences": {"texts": "Write texts"},
    "show_progress_bar": {"progress": "Write progress", "on_progress": "Write on_progress=function of (done, total)"},
    "src_key_padding_mask": {"key_padding_mask": "Write key_padding_mask=attn.Mask.block(m)"},
    "src_mask": {"mask": "Write mask=attn.Mask.block(m), or attn.Mask.additive(m) for numbers"},
    "torch_dtype": {"weights": "Write weights='float32' or weights='int8'"},
    "train_batch_size": {"batch_size": "Write batch_size"},
    "trust_remote_code": {"": "Leave it out: attn never runs code of a model"},
    "verbose": {"on_progress": "Write on_progress=function of (done, total)"},
}

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "str": "a str",
    "None": "None",
    "numpy.typing.ArrayLike": "an array",
    "attn.Encoding": "an Encoding",
    "attn.ImageInputs": "an ImageInputs",
}
_UNSIGNED = ("count", "seed", "threads")
_CONTAINERS: dict[str, tuple[Any, str]] = {
    "collections.abc.Callable": (Callable, "a function"),
    "collections.abc.Iterable": (Iterable, "a list"),
    "collections.abc.Iterator": (Iterator, "an iterator"),
    "collections.abc.Mapping": (Mapping, "a dict"),
    "collections.abc.Sequence": (Iterable, "a list"),
}


Function = TypeVar("Function", bound=Callable[..., Any])


class _Annotation(str):
    """Text of a type, which help() shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(text: str, defaults: tuple[Any, ...] | None) -> inspect.Signature:
    """Reads a signature of nanobind, where \\N stands for default number N."""
    source = re.sub(r"\\(\d+)", r"_default(\1)", text.replace("def (", "def _(").replace("attn._attn.", "attn."))
    made = ast.parse(source + ": ...").body[0]
    assert isinstance(made, ast.FunctionDef)

    def default(node: ast.expr | None) -> Any:
        if node is None:
            return inspect.Parameter.empty
        if isinstance(node, ast.Call):
            assert defaults is not None
            return defaults[ast.literal_eval(node.args[0])]
        return ast.literal_eval(node)

    def annotation(node: ast.expr | None) -> Any:
        return inspect.Parameter.empty if node is None else _Annotation(ast.unparse(node))

    given, kind = made.args, inspect.Parameter
    positional = given.posonlyargs + given.args
    without = [None] * (len(positional) - len(given.defaults))
    parameters = [
        kind(each.arg, kind.POSITIONAL_OR_KEYWORD, default=default(value), annotation=annotation(each.annotation))
        for each, value in zip(positional, [*without, *given.defaults], strict=True)
    ]
    parameters += [
        kind(each.arg, kind.KEYWORD_ONLY, default=default(value), annotation=annotation(each.annotation))
        for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg is not None:
        parameters.append(kind(given.kwarg.arg, kind.VAR_KEYWORD, annotation=annotation(given.kwarg.annotation)))
    return inspect.Signature(parameters, return_annotation=annotation(made.returns))


class _Signature(inspect.Signature):
    """One signature for the overloads of a function, which differ in types alone. It is read when it is first used, to import attn faster."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    def __getattr__(self, name: str) -> Any:
        if name not in inspect.Signature.__slots__:
            raise AttributeError(name)
        overloads = [_signature(text, defaults) for text, _, defaults in self._function.__nb_signature__]

        def either(annotations: list[Any]) -> Any:
            return _Annotation(" | ".join(dict.fromkeys(annotations))) if len(annotations) > 1 else annotations[0]

        super().__init__(
            [
                each if each.annotation is each.empty else each.replace(annotation=either([one.parameters[each.name].annotation for one in overloads]))
                for each in overloads[0].parameters.values()
            ],
            return_annotation=either([one.return_annotation for one in overloads]),
        )
        return getattr(self, name)

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        return inspect.Signature(list(self.parameters.values()), return_annotation=self.return_annotation).replace(**changes)

    def __reduce__(self) -> Any:
        return self.replace().__reduce__()


def _parts(annotation: str) -> list[ast.expr]:
    """The alternatives of a type."""

    def split(node: ast.expr) -> list[ast.expr]:
        return split(node.left) + split(node.right) if isinstance(node, ast.BinOp) else [node]

    return split(ast.parse(annotation, mode="eval").body)


def _is_repeated(inner: ast.Tuple) -> bool:
    """Whether these are the parts of tuple[X, ...]."""
    return ast.unparse(inner.elts[-1]) == "..."


def _expected(annotation: str) -> str:
    """A type in words."""

    def words(node: ast.expr) -> str:
        text = ast.unparse(node)
        if not isinstance(node, ast.Subscript):
            return _WORDS.get(text, f"a {text.rpartition('.')[2]}")
        name, inner = ast.unparse(node.value), node.slice
        if name == "typing.Literal":
            return ", ".join(ast.unparse(each) for each in inner.elts) if isinstance(inner, ast.Tuple) else ast.unparse(inner)
        if name == "tuple" and isinstance(inner, ast.Tuple) and not _is_repeated(inner):
            return f"a tuple of {' and '.join(words(each) for each in inner.elts)}"
        if isinstance(inner, ast.Tuple) and _is_repeated(inner):
            inner = inner.elts[0]
        kind = _CONTAINERS.get(name, (object, f"a {name.rpartition('.')[2]}"))[1]
        return f"{kind} with {words(inner)} each" if ast.unparse(inner) in _WORDS else kind

    parts = list(dict.fromkeys(words(each) for each in _parts(annotation)))
    return ", ".join(parts[:-1]) + " or " * (len(parts) > 1) + parts[-1]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _items(value: object) -> list[Any] | None:
    """The elements of a list or tuple."""
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else None


def _fits(node: ast.expr, value: Any) -> bool:
    """Whether a value has a type; True for types that the functions check themselves."""
    text = ast.unparse(node)
    if text in ("None", "bool"):
        return value is None if text == "None" else isinstance(value, bool)
    if text == "int":
        try:
            return -(2**63) <= operator.index(value) < 2**64
        except TypeError:
            return False
    if text == "float":
        return hasattr(value, "__float__") or hasattr(value, "__index__")
    if text == "str":
        return isinstance(value, str) and _is_encodable(value)
    if text in ("attn.LayerPatch", "attn.KeyValueCache", "attn.TextModel"):
        return type(value).__name__ == text.rpartition(".")[2]
    if not isinstance(node, ast.Subscript):
        return True
    name, inner = ast.unparse(node.value), node.slice
    if name == "typing.Literal":
        return isinstance(value, str) and _is_encodable(value)
    if name == "tuple" and isinstance(inner, ast.Tuple):
        items = _items(value)
        if _is_repeated(inner):
            return items is not None and all(_fits(inner.elts[0], one) for one in items[:1000])
        return items is not None and len(items) == len(inner.elts) and all(_fits(each, one) for each, one in zip(inner.elts, items, strict=True))
    if name not in _CONTAINERS:
        return True
    if not isinstance(value, _CONTAINERS[name][0]) or (name == "collections.abc.Sequence" and isinstance(value, str | bytes)):
        return False
    if name == "collections.abc.Mapping" and isinstance(inner, ast.Tuple):
        return all(_fits(inner.elts[0], key) and _fits(inner.elts[1], each) for key, each in value.items())
    return name != "collections.abc.Sequence" or all(_fits(inner, each) for each in islice(value, 1000))


def _got(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if -(2**63) <= value < 2**64 else "a whole number of more than 64 bits"
    if isinstance(value, str) and not _is_encodable(value):
        return "a str with lone surrogates"
    items = _items(value)
    if items is not None and len(items) < 100:
        return f"a {type(value).__name__} with {', '.join(dict.fromkeys(type(each).__name__ for each in items)) or 'nothing'}"
    return type(value).__name__


def _unknown(op: str, name: str, signature: inspect.Signature) -> AttnError:
    from difflib import get_close_matches

    known = [each for each in signature.parameters if each != "self"]
    remedies = _INSTEAD.get(name, {})
    help = next((text for argument, text in remedies.items() if argument == "" or argument in known), None)
    if help is None and (similar := get_close_matches(name, known, 1)):
        help = f"Did you mean {similar[0]}?"
    return error_of(UnknownArgumentError, op, name, f"one of {', '.join(known)}" if known else "no argument", "unknown", help)


def _unbound(op: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AttnError | None:
    """The error of arguments that are unknown, missing, given twice or in excess."""
    kind = inspect.Parameter
    parameters = signature.parameters
    if not any(each.kind == kind.VAR_KEYWORD for each in parameters.values()):
        for name in kwargs:
            if name not in parameters:
                return _unknown(op, name, signature)
    positional = [name for name, each in parameters.items() if each.kind in (kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(positional):
        at = len(args) - len(positional)
        count = len(positional) - ("self" in positional)
        keywords = [name for name, each in parameters.items() if each.kind == kind.KEYWORD_ONLY]
        help = f"Write {keywords[0]}=… and so on for further ones" if keywords else None
        return error_of(ArgumentError, op, "the number of positional arguments", f"at most {count}", count + at, help)
    for name in positional[: len(args)]:
        if name in kwargs:
            return error_of(ArgumentError, op, name, "one value", "given by position and by name")
    for name in positional[len(args) :]:
        if name in kwargs and parameters[name].kind == kind.POSITIONAL_ONLY:
            return error_of(ArgumentError, op, name, "a value by position", "given by name", f"Leave out {name}=")
        if name not in kwargs and parameters[name].default is kind.empty:
            annotation = parameters[name].annotation
            return error_of(ArgumentError, op, name, _expected(annotation) if isinstance(annotation, str) else "a value", "missing")
    return None


def _misfit(op: str, signature: inspect.Signature, given: dict[str, Any]) -> AttnError | None:
    """The error of the first argument of a wrong type."""
    for name, value in given.items():
        annotation = signature.parameters[name].annotation
        if not isinstance(annotation, str) or annotation == "typing.Any":
            continue
        if not any(_fits(each, value) for each in _parts(annotation)):
            return error_of(ArgumentError, op, name, _expected(annotation), _got(value))
    for name, value in given.items():
        annotation = signature.parameters[name].annotation
        is_text = isinstance(annotation, str) and "PathLike" not in annotation
        if is_text and any(isinstance(each, str) and not _is_encodable(each) for each in _items(value) or [value]):
            return error_of(ArgumentError, op, name, _expected(annotation), "a str with lone surrogates")
        if name in _UNSIGNED and isinstance(value, int) and value < 0:
            return error_of(ArgumentError, op, name, "a whole number of at least 0", value)
        if value is None and isinstance(annotation, str) and "None" not in annotation:
            expected = "a str, bytes or os.PathLike" if "PathLike" in annotation else _expected(annotation)
            return error_of(ArgumentError, op, name, expected, "NoneType")
    return None


def _refusal(
    qualname: str, owner: type | None, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> AttnError | None:
    """The error of attn for another error that the extension raised itself. None if it is that of a callback or an iterator."""
    op = _op(qualname)
    if isinstance(error, MemoryError):
        return error_of(OutOfMemoryError, op, "the memory", "enough memory for the call", "used up")
    instead = _unbound(op, signature, args, kwargs)
    if instead is None:
        given = dict(signature.bind(*args, **kwargs).arguments)
        for each in signature.parameters.values():
            if each.kind == each.VAR_KEYWORD:
                given.pop(each.name, None)
        if owner is not None and "self" in given and not isinstance(given["self"], owner):
            return error_of(ArgumentError, op, "self", f"a {owner.__name__}", type(given["self"]).__name__)
        instead = _misfit(op, signature, given)
    if instead is None and "incompatible function arguments" in str(error):
        types = ", ".join(type(each).__name__ for each in [*args, *kwargs.values()])
        instead = error_of(ArgumentError, op, "an argument", f"those that help(attn.{qualname}) lists", f"unusable (of the types {types})")
    return instead


def _op(qualname: str) -> str:
    """How messages name a function: embed, TextModel.load, MultiHeadAttention for its constructor and call."""
    owner, _, name = qualname.rpartition(".")
    return owner if name in ("__init__", "__call__", "forward") and owner else name if name not in ("load", "from_pretrained") else qualname


def _checked(function: Any, signature: inspect.Signature, owner: type | None, name: str) -> Callable[..., Any]:
    qualname = f"{owner.__name__}.{name}" if owner else name
    keeps_arguments = name == "__init__" and hasattr(owner, "_arguments")

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            made = function(*args, **kwargs)
            if keeps_arguments:
                given = signature.bind(*args, **kwargs).arguments
                given.pop("self")._arguments = given
            return made
        except Exception as error:
            # An error of a callback or iterator has its own frames.
            assert error.__traceback__ is not None
            if isinstance(error, AttnError) or error.__traceback__.tb_next is not None:
                raise
            if (refused := _refusal(qualname, owner, signature, args, kwargs, error)) is None:
                raise
            raise refused from None

    call.__name__, call.__qualname__, call.__module__ = name, qualname, "attn"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _python_function(function: Any, owner: type | None, name: str) -> Callable[..., Any]:
    made = _checked(function, _Signature(function), owner, name)
    made.__doc__ = next((text for _, text, _ in function.__nb_signature__ if text), None)
    return made


def checked(function: Function) -> Function:
    """Decorates a function of Python, so that unknown, missing and surplus arguments are errors of attn."""
    signature = inspect.signature(function)
    made: Any = _checked(function, signature, None, function.__name__)
    made.__doc__ = function.__doc__
    return made  # type: ignore[no-any-return]


def _no_constructor(owner: type) -> Callable[..., None]:
    how = {
        "ImageModel": "ImageModel.load(path)",
        "KeyValueCache": "model.create_cache()",
        "Mask": "Mask.attend(m), Mask.block(m) or Mask.additive(m)",
        "TextModel": "TextModel.load(path)",
        "Tokenizer": "Tokenizer.from_pretrained(path)",
        "WordEmbeddings": "model.word_embeddings",
    }

    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        raise error_of(ArgumentError, owner.__name__, "the constructor", "a function that makes one", "called", f"Write {how[owner.__name__]}")

    return __init__


def _replace_methods(owner: type) -> None:
    for name, member in list(vars(owner).items()):
        if isinstance(member, property):
            get, set = (each and _python_function(each, owner, name) for each in (member.fget, member.fset))
            setattr(owner, name, property(get, set, doc=member.__doc__))
        elif hasattr(member, "__nb_signature__"):
            made = _python_function(member, owner, name)
            setattr(owner, name, staticmethod(made) if type(member).__name__ == "nb_func" else made)
    if not hasattr(vars(owner).get("__init__"), "__signature__"):
        owner.__init__ = _no_constructor(owner)  # type: ignore[misc]


def replace_functions(module: ModuleType) -> None:
    """Replaces the functions and methods of the extension by Python functions, which have signatures and raise errors of attn alone."""
    for name, member in list(vars(module).items()):
        if isinstance(member, type):
            _replace_methods(member)
        elif hasattr(member, "__nb_signature__"):
            setattr(module, name, _python_function(member, None, name))
