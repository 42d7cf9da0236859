import os
import shutil
from pathlib import Path

import attn
import pytest

from golden import testdata


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="session")
def sentiment() -> attn.TextModel:
    return attn.TextModel.load(testdata / "models" / "sentiment")


@pytest.fixture(scope="session")
def mini_lm() -> Path:
    """The folder of all-MiniLM-L6-v2 (tools/setup models)."""
    folder = testdata.parent / "models" / "all-MiniLM-L6-v2"
    if not folder.exists() and os.environ.get("CI") != "true":
        pytest.skip("models/all-MiniLM-L6-v2 is not there: tools/setup models")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None and os.environ.get("CI") != "true":
        pytest.skip("Chromium is not there")
    assert program is not None
    return program
