"""Metadata that depends on the repository's address, which a release knows (ATTN_REPOSITORY) and a local build does not."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_PAGES = {"Documentation": "docs/guide/python.md", "Changelog": "CHANGELOG.md"}


def _page(repository: str, version: str, path: str) -> str:
    return f"{repository}/blob/v{version}/{path}"


def _readme(repository: str, version: str) -> str:
    """The README with links to files of the repository made absolute; without an address their texts are left."""

    def link(match: re.Match[str]) -> str:
        text, path = match.groups()
        return f"[{text}]({_page(repository, version, os.path.normpath('python/' + path))})" if repository else text

    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", link, (_ROOT / "python" / "README.md").read_text("utf-8"))


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the README and the URLs; called by scikit-build-core."""
    repository = os.environ.get("ATTN_REPOSITORY", "").rstrip("/").removesuffix(".git")
    urls = {"Source": repository, **{name: _page(repository, project["version"], path) for name, path in _PAGES.items()}}
    return {
        "readme": {"text": _readme(repository, project["version"]), "content-type": "text/markdown"},
        "urls": urls if repository else {},
    }
