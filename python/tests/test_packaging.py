"""What a wheel and a source distribution contain, and their metadata."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import attn._attn
import pytest

from golden import testdata

repository = testdata.parent


def provider() -> ModuleType:
    """The program that makes the metadata which depend on the repository's address."""
    spec = importlib.util.spec_from_file_location("attn_metadata", repository / "python" / "metadata" / "attn_metadata.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("sdist")
    program = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, os.fspath(folder)], cwd=repository, check=True, capture_output=True)
    (archive,) = folder.glob("attn-*.tar.gz")
    return archive


def test_the_source_distribution_is_small_and_complete(sdist: Path, tmp_path: Path) -> None:
    assert sdist.stat().st_size < 3_000_000
    with tarfile.open(sdist) as archive:
        names = [each.partition("/")[2] for each in archive.getnames()]
        archive.extractall(tmp_path, filter="data")
    for name in ("CMakeLists.txt", "LICENSE", "python/README.md", "python/attn/__init__.py", "src/attn/core.hpp", "PKG-INFO"):
        assert name in names
    assert not [name for name in names if name.startswith(("testdata", "web/page", "python/tests", "build", ".git"))]
    assert not [name for name in names if "__pycache__" in name]
    headers = {path.relative_to(repository).as_posix() for path in (repository / "src" / "attn").rglob("*.[chi]*") if path.is_file()}
    assert headers <= set(names)
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not there")
    (root,) = tmp_path.iterdir()
    nanobind = pytest.importorskip("nanobind")
    options = ["-DATTN_BUILD_PYTHON=ON", "-DATTN_BUILD_C=OFF", "-DATTN_BUILD_COMMAND=OFF", "-DATTN_INSTALL=OFF"]
    options += [f"-Dnanobind_DIR={nanobind.cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run([cmake, "-S", root, "-B", tmp_path / "build", *options], check=True, capture_output=True)


def test_the_wheel_has_the_metadata_that_people_search_by() -> None:
    metadata = importlib.metadata.metadata("attn")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"embeddings", "interpretability", "transformers"} <= set(metadata["Keywords"].split(","))
    assert any(each.startswith("Programming Language :: Python :: 3.1") for each in metadata.get_all("Classifier") or [])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Description"] is not None
    assert metadata["Description"].startswith("# attn\n")
    assert "](" not in re.sub(r"\]\(https?://", "", metadata["Description"])


def test_a_release_has_addresses_and_absolute_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTN_REPOSITORY", "https://example.org/attn.git")
    made = provider().dynamic_metadata({}, {"version": "1.2.3"})
    assert made["urls"]["Source"] == "https://example.org/attn"
    assert made["urls"]["Changelog"] == "https://example.org/attn/blob/v1.2.3/CHANGELOG.md"
    links = re.findall(r"\]\(([^)]*)\)", made["readme"]["text"])
    assert links
    for link in [*links, *made["urls"].values()]:
        assert link.startswith("https://example.org/attn")
        path = link.partition("/blob/v1.2.3/")[2].partition("#")[0]
        assert (repository / path).exists(), link


def test_a_local_build_has_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTN_REPOSITORY", raising=False)
    made = provider().dynamic_metadata({}, {"version": "1.2.3"})
    assert made["urls"] == {}
    assert "](" not in made["readme"]["text"]
    assert "has tables" in made["readme"]["text"]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not there")
def test_the_extension_needs_no_utf8proc_if_a_static_one_is_there() -> None:
    static = [path for folder in ("/usr/lib", "/usr/local/lib", "/usr/lib64") for path in Path(folder).glob("**/libutf8proc*.a")]
    if not static:
        pytest.skip("libutf8proc.a is not there")
    needed = subprocess.run(["readelf", "-d", str(attn._attn.__file__)], check=True, capture_output=True, text=True).stdout
    assert "libstdc++" in needed
    assert "utf8proc" not in needed


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not there")
def test_the_extension_exports_no_function_of_attn() -> None:
    """The dynamic linker would merge functions of one name in several extensions."""
    program = ["nm", "--dynamic", "--defined-only", "--demangle", str(attn._attn.__file__)]
    symbols = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert "PyInit__attn" in symbols
    assert re.findall(r" (attn::[\w:~]+\(.*)", symbols) == []
