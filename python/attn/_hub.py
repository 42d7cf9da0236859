"""Finds models in the cache of Hugging Face's programs, without the network."""

import errno
import os
import re
from pathlib import Path

from ._errors import MissingFileError, error_of


def _cache() -> Path:
    """The folder of the environment variables of huggingface_hub."""
    if given := os.environ.get("HF_HUB_CACHE"):
        return Path(given).expanduser()
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home).expanduser() / "hub"


def folder_of(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], op: str) -> str:
    """Returns the folder of a downloaded model by its id, and a path that is not an id unchanged; op is the function in errors."""
    name = os.fsdecode(path)
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", name) or name.endswith(".gguf"):
        return name
    cache = _cache()
    # Names without an owner belong to sentence-transformers.
    ids = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    for each in ids:
        folder = cache / f"models--{each.replace('/', '--')}"
        try:
            revision = (folder / "refs" / "main").read_text().strip()
        except OSError:
            continue
        snapshot = folder / "snapshots" / revision
        if revision and snapshot.is_dir():
            return os.fspath(snapshot)
    raise error_of(
        MissingFileError,
        op,
        "path",
        f"a folder, or the id of a model in the cache {cache}",
        f"{name}, which is not there",
        f"To use a model of Hugging Face by its id, download it first: hf download {name}",
        errno.ENOENT,
    )
