"""Formats conversations by the Jinja template of a model, in the environment that transformers gives it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, cast

from ._errors import ArgumentError, FormatError, UnsupportedError, fail
from ._sentences import read_json

_OP = "apply_chat_template"
_INSTALL = "Install it with pip install jinja2"


def _environment() -> Any:
    try:
        import jinja2.sandbox
    except ImportError as error:
        message = f"{_OP}: the package jinja2 is missing, expected an installed one. {_INSTALL}."
        raise UnsupportedError(message, {"op": _OP, "argument": "jinja2", "help": _INSTALL}) from error
    made: Any = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])

    def to_json(
        value: object, ensure_ascii: bool = False, indent: int | None = None, separators: tuple[str, str] | None = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    def strftime_now(form: str) -> str:
        return datetime.now().strftime(form)

    made.globals["strftime_now"] = strftime_now
    return made


def _templates(model: Any) -> dict[str, str]:
    given = read_json(model, "tokenizer_config.json").get("chat_template")
    templates: list[dict[str, Any]] = cast("list[dict[str, Any]]", given) if isinstance(given, list) else [{"name": "default", "template": given}]
    named: dict[str, Any] = {each["name"]: each["template"] for each in templates}
    if (file := model._file("chat_template.jinja")) is not None:
        named["default"] = file.decode("utf-8-sig")
    return {name: template for name, template in named.items() if isinstance(template, str)}


def _special_tokens(model: Any) -> dict[str, str]:
    tokens: dict[str, str] = {}
    value: Any
    for name, value in {**read_json(model, "special_tokens_map.json"), **read_json(model, "tokenizer_config.json")}.items():
        token: Any = cast("dict[str, Any]", value).get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(token, str):
            tokens[name] = token
    return tokens


def _choose(templates: Mapping[str, str], name: str | None, has_tools: bool) -> str:
    if name is not None:
        return templates.get(name, name)
    found = templates.get("tool_use") if has_tools else None
    if found is None:
        found = templates.get("default")
    if found is not None:
        return found
    if templates:
        fail(ArgumentError, _OP, "chat_template", f"one of {', '.join(templates)}", "missing")
    help = "Pass a template as chat_template, or use generate(): base models continue any text"
    raise UnsupportedError(f"{_OP}: the model's files have no chat template. {help}.", {"op": _OP, "argument": "chat_template", "help": help})


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def apply_chat_template(
    model: Any,
    messages: Any,
    add_generation_prompt: bool,
    tools: Sequence[Any] | None,
    documents: Sequence[Any] | None,
    chat_template: Any,
    variables: Mapping[str, Any],
) -> str:
    if not _is_list(messages):
        fail(ArgumentError, _OP, "messages", "a list of messages with role and content", type(messages).__name__)
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(cast("Mapping[str, Any]", message).get("role"), str):
            fail(ArgumentError, _OP, f"messages[{i}]", "a dict with role, a str, and content", repr(cast(object, message))[:60])
    if chat_template is not None and not isinstance(chat_template, str):
        fail(ArgumentError, _OP, "chat_template", "the name of a template, or a template", type(chat_template).__name__)
    environment = _environment()
    text = _choose(_templates(model), chat_template, tools is not None)
    try:
        template = environment.from_string(text)
    except Exception as error:
        raise FormatError(f"{_OP}: the chat template is no Jinja template ({error})", {"op": _OP, "argument": "chat_template"}) from error
    given: dict[str, Any] = {**_special_tokens(model), **variables, "messages": messages, "tools": tools, "documents": documents}
    try:
        return str(template.render(**given, add_generation_prompt=add_generation_prompt))
    except Exception as error:
        raise ArgumentError(f"{_OP}: the chat template refused these messages ({error})", {"op": _OP, "argument": "messages"}) from error
