"""Prints a retrieval set as JSON lines: queries and passages from docstrings of Python's standard library.

The query is the first sentence of a docstring, the one relevant passage is the rest. The first sentence counts if it
has 5 to 30 words and no other docstring begins with it, the rest if it has at least 20 words and is not a doctest or a
list of parameters alone. The sources are parsed, not imported; tests and installed packages are left out.
"""

import ast
import json
import re
import sysconfig
from collections import Counter
from pathlib import Path

LEFT_OUT = {"__pycache__", "idlelib", "lib2to3", "site-packages", "test", "tests"}

library = Path(sysconfig.get_path("stdlib"))
found: dict[str, tuple[str, str]] = {}
queries: Counter[str] = Counter()
for path in sorted(library.rglob("*.py")):
    name = path.relative_to(library)
    if LEFT_OUT & set(name.parts):
        continue
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        continue
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        sentence, _, rest = re.sub(r"(?<=[.!?])\s+", "\n", (ast.get_docstring(node) or "").strip(), count=1).partition("\n")
        query = " ".join(sentence.split())
        queries[query] += 1
        prose = re.sub(r"^\s*(>>>|\.\.\. ).*$", "", rest, flags=re.M)
        if 5 <= len(query.split()) <= 30 and len(prose.split()) >= 20:
            place = name.as_posix() + ("" if isinstance(node, ast.Module) else f":{node.lineno}")
            found.setdefault(query, (place, rest.strip()))
passages: set[str] = set()
for query, (place, passage) in found.items():
    if queries[query] == 1 and passage not in passages:
        passages.add(passage)
        print(json.dumps({"id": place, "query": query, "passage": passage}))
