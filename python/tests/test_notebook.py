"""Runs the example notebook in Jupyter."""

import json
import subprocess
import sys
from pathlib import Path

from browser import LOOK, see
from golden import testdata

CELLS = [
    "import attn\nmodel = attn.TextModel.load(MODEL)",
    "attn.show(model, 'not bad at all', layer=1, head=2)",
    "attn.set_num_threads(2)\nattn.show([[0.9, 0.1], [0.2, 0.8]], ['a', 'b'])",
]


def test_the_notebook_example_runs_in_jupyter(chromium: str, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "id": str(i), "metadata": {}, "execution_count": None, "outputs": [], "source": source}
        for i, source in enumerate([CELLS[0].replace("MODEL", repr(str(testdata / "models" / "sentiment"))), *CELLS[1:]])
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    (tmp_path / "map.ipynb").write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", str(tmp_path / "map.ipynb")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    page = (tmp_path / "map.html").read_text("utf-8")
    assert page.count("<attention-map ") == 2
    seen = see(chromium, page.replace("</body>", f"<script>{LOOK}drawn().then(tell)</script></body>"), tmp_path)
    assert [each["label"].split(" rows")[0].split()[-1] for each in seen] == ["6", "2"]
    for each in seen:
        assert each["width"] > 100
        assert each["coloured"] > 100
        assert each["table"] == 0
