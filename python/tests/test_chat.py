"""Conversations as transformers formats them (testdata/chat_templates.json)."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import attn
import pytest

from golden import testdata

GOLDENS = json.loads((testdata / "chat_templates.json").read_text("utf-8"))
HELLO = [{"role": "user", "content": "Hi"}]
NAMES = "{% for m in messages %}{{ m.role }}{{ eos_token }}{% endfor %}"


def model_with(folder: Path, config: dict[str, Any], **files: str) -> attn.TextModel:
    shutil.copytree(testdata / "models" / "tiny-llama", folder, dirs_exist_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps({**GOLDENS["tokens"], **config}), "utf-8")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, "utf-8")
    return attn.TextModel.load(folder)


@pytest.mark.parametrize("name", GOLDENS["templates"])
def test_conversations_have_the_text_of_transformers(name: str, tmp_path: Path) -> None:
    model = model_with(tmp_path, {"chat_template": GOLDENS["templates"][name]})
    cases = [case for case in GOLDENS["cases"] if case["template"] == name]
    assert len(cases) > 1
    for case in cases:
        text = model.apply_chat_template(case["messages"], add_generation_prompt=case["addGenerationPrompt"], **case["options"])
        assert text == case["text"]


def test_the_template_is_found_by_name_with_tools_in_a_file_or_given(tmp_path: Path) -> None:
    two = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools {{ tools | length }}"}]
    model = model_with(tmp_path / "two", {"chat_template": two})
    assert model.apply_chat_template(HELLO) == "plain"
    assert model.apply_chat_template(HELLO, tools=[{}, {}]) == "tools 2"
    assert model.apply_chat_template(HELLO, tools=[{}], chat_template="default") == "plain"
    assert model.apply_chat_template(HELLO, chat_template=NAMES) == "user</s>"
    in_file = model_with(tmp_path / "file", {}, chat_template__jinja=NAMES)
    assert in_file.apply_chat_template(HELLO) == "user</s>"
    in_file.save_pretrained(tmp_path / "saved")
    assert attn.TextModel.load(tmp_path / "saved").apply_chat_template(HELLO) == "user</s>"
    rag = model_with(tmp_path / "rag", {"chat_template": [{"name": "rag", "template": NAMES}]})
    assert rag.apply_chat_template(HELLO, chat_template="rag") == "user</s>"
    with pytest.raises(attn.ArgumentError, match="one of rag"):
        rag.apply_chat_template(HELLO)


def test_wrong_messages_and_templates_are_refused(tmp_path: Path) -> None:
    model = model_with(tmp_path, {"chat_template": GOLDENS["templates"]["headers"]})
    for messages in ("Hi", ["Hi"], [{"content": "Hi"}], [{"role": 1}]):
        with pytest.raises(attn.ArgumentError, match="messages"):
            model.apply_chat_template(messages)  # type: ignore[arg-type]
    with pytest.raises(attn.ArgumentError, match="must alternate"):
        model.apply_chat_template([*HELLO, *HELLO])
    with pytest.raises(attn.FormatError, match="Jinja"):
        model.apply_chat_template(HELLO, chat_template="{% for %}")
    with pytest.raises(attn.ArgumentError, match="refused"):
        model.apply_chat_template(HELLO, chat_template="{{ messages.__class__.__mro__[1].__subclasses__() }}")
    base = attn.TextModel.load(testdata / "models" / "tiny-llama")
    with pytest.raises(attn.UnsupportedError, match="no chat template"):
        base.apply_chat_template(HELLO)


def test_without_jinja2_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2.sandbox", None)
    with pytest.raises(attn.UnsupportedError, match="pip install jinja2"):
        attn.TextModel.load(testdata / "models" / "tiny-llama").apply_chat_template(HELLO, chat_template=NAMES)
