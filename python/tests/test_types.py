"""Type stubs, and docstrings."""

import importlib.resources
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attn
import attn._attn
import pytest
import typed

from golden import testdata


def test_a_typed_program_runs() -> None:
    typed.main(testdata / "models" / "sentiment")
    typed.tasks(testdata / "models")
    typed.tables(testdata / "models" / "sentiment")


def test_mypy_accepts_valid_and_rejects_invalid_calls(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    for what in ([str(Path(__file__).with_name("typed.py"))], ["--package", "attn"]):
        out, err, code = api.run(["--strict", f"--cache-dir={tmp_path}", *what])
        assert (code, err) == (0, ""), out


def test_pyright_accepts_valid_and_rejects_invalid_calls(tmp_path: Path) -> None:
    """The npm package pyright, because the one of PyPI downloads it at the first use."""
    node, program = shutil.which("node"), testdata.parent / "node_modules" / "pyright" / "index.js"
    if (node is None or not program.exists()) and os.environ.get("CI") != "true":
        pytest.skip("pyright is not there: tools/setup node")
    assert node is not None
    # pyright reports nothing in the folder of installed packages.
    shutil.copytree(Path(attn.__file__).parent, tmp_path / "attn", ignore=shutil.ignore_patterns("__pycache__"))
    text = Path(__file__).with_name("typed.py").read_text()
    (tmp_path / "typed.py").write_text("# pyright: reportUnnecessaryTypeIgnoreComment=true\n" + text)
    options = {"typeCheckingMode": "strict", "include": ["attn", "typed.py"], "reportMissingModuleSource": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    command = [node, os.fspath(program), "--project", os.fspath(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors" in done.stdout


def test_stubs_contain_every_name_of_the_extension() -> None:
    stub = (importlib.resources.files("attn") / "_attn.pyi").read_text()
    assert (importlib.resources.files("attn") / "py.typed").is_file()
    for name, value in vars(attn._attn).items():
        if name.startswith("_"):
            continue
        assert re.search(rf"^(def|class) {name}\b", stub, re.M), name
        if inspect.isclass(value):
            body = re.search(rf"^class {name}\b.*?(?=^\S|\Z)", stub, re.M | re.S)
            assert body is not None
            for member in vars(value):
                if not member.startswith("_") or member == "__call__":
                    assert re.search(rf"^    def {member}\b", body[0], re.M), f"{name}.{member}"


def test_every_public_name_has_a_docstring() -> None:
    for name in attn.__all__:
        thing = getattr(attn, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing) and thing.__module__ == "attn._attn":
            for member, value in vars(thing).items():
                if not member.startswith("_"):
                    assert inspect.getdoc(value), f"{name}.{member}"
