"""examples/python/langchain_embeddings.py and llama_index_embedding.py. If the libraries are not installed, which is the default because they
bring 33 packages (72 MB) and 61 (199 MB), a class with the same methods stands in for theirs."""

import abc
import asyncio
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attn
import numpy
import pytest

from golden import testdata

TEXTS = ["A film about the sea.", "Rice with soup.", "It rains."]
PROMPTS = {"query": "search: ", "document": "text: "}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with prompts for queries and documents."""
    made = shutil.copytree(testdata / "models" / "sentiment", tmp_path_factory.mktemp("model") / "with-prompts")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    (made / "modules.json").write_text(json.dumps(modules))
    (made / "config_sentence_transformers.json").write_text(json.dumps({"prompts": PROMPTS}))
    return made


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """Adds a module of these members, and its parents."""
    parts = name.split(".")
    for i in range(len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[: i + 1]), ModuleType(".".join(parts[: i + 1])))
    vars(sys.modules[name]).update(members)


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, testdata.parent / "examples" / "python" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class LangChainBase(abc.ABC):
    @abc.abstractmethod
    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    @abc.abstractmethod
    def embed_query(self, text: str) -> list[float]: ...


class LlamaIndexBase(abc.ABC):
    def __init__(self, model_name: str, embed_batch_size: int) -> None:
        self.model_name, self.embed_batch_size = model_name, embed_batch_size

    @abc.abstractmethod
    def _get_query_embedding(self, query: str) -> list[float]: ...

    @abc.abstractmethod
    async def _aget_query_embedding(self, query: str) -> list[float]: ...

    @abc.abstractmethod
    def _get_text_embedding(self, text: str) -> list[float]: ...

    def get_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    async def aget_query_embedding(self, query: str) -> list[float]:
        return await self._aget_query_embedding(query)

    def get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        size, embed = self.embed_batch_size, getattr(self, "_get_text_embeddings")  # noqa: B009
        return [vector for i in range(0, len(texts), size) for vector in embed(texts[i : i + size])]


@pytest.mark.parametrize("library", ["stand-in", *(["langchain-core"] if importlib.util.find_spec("langchain_core") else [])])
def test_langchain_embeds_with_the_prompts_of_the_model(library: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "stand-in":
        stand_in(monkeypatch, "langchain_core.vectorstores", InMemoryVectorStore=object)
        stand_in(monkeypatch, "langchain_core.embeddings", Embeddings=LangChainBase)
    module = example("langchain_embeddings")
    model = attn.TextModel.load(folder)
    for embeddings in (module.AttnEmbeddings(folder), module.AttnEmbeddings(model)):
        assert embeddings.embed_query("the sea") == model.embed("search: the sea")[0].tolist()
        assert embeddings.embed_documents(TEXTS) == model.embed([f"text: {text}" for text in TEXTS]).tolist()
    normalized = module.AttnEmbeddings(model, normalize=True, truncate_dim=8)
    assert numpy.shape(normalized.embed_documents(TEXTS)) == (3, 8)
    assert numpy.allclose(numpy.linalg.norm(normalized.embed_query("the sea")), 1)
    if library == "stand-in":
        return
    assert asyncio.run(normalized.aembed_documents(TEXTS)) == normalized.embed_documents(TEXTS)
    store = module.InMemoryVectorStore(normalized)
    store.add_texts(TEXTS)
    found = store.similarity_search("the sea", k=3)
    scores = normalized.embed_documents(TEXTS) @ numpy.array(normalized.embed_query("the sea"))
    assert [document.page_content for document in found] == [TEXTS[i] for i in numpy.argsort(-scores)]
    monkeypatch.setattr(sys, "argv", ["program", str(folder), "the sea", *TEXTS])
    assert module.main() == 0


@pytest.mark.parametrize("library", ["stand-in", *(["llama-index-core"] if importlib.util.find_spec("llama_index") else [])])
@pytest.mark.filterwarnings("default")
def test_llama_index_embeds_with_the_prompts_of_the_model(library: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "stand-in":
        stand_in(monkeypatch, "llama_index.core.base.embeddings.base", BaseEmbedding=LlamaIndexBase)
        # The same parents again would hide the first module.
        monkeypatch.setitem(sys.modules, "llama_index.core.bridge", ModuleType("llama_index.core.bridge"))
        monkeypatch.setitem(sys.modules, "llama_index.core.bridge.pydantic", ModuleType("llama_index.core.bridge.pydantic"))
        vars(sys.modules["llama_index.core.bridge.pydantic"])["PrivateAttr"] = lambda: None
    module = example("llama_index_embedding")
    model = attn.TextModel.load(folder)
    for embedding in (module.AttnEmbedding(folder, embed_batch_size=2), module.AttnEmbedding(model)):
        assert embedding.get_query_embedding("the sea") == model.embed("search: the sea")[0].tolist()
        assert asyncio.run(embedding.aget_query_embedding("the sea")) == embedding.get_query_embedding("the sea")
        expected = model.embed([f"text: {text}" for text in TEXTS]).tolist()
        assert embedding.get_text_embedding_batch(TEXTS) == expected
        assert embedding.get_text_embedding(TEXTS[1]) == expected[1]
    assert module.AttnEmbedding(folder).model_name == str(folder)
    assert module.AttnEmbedding(model).model_name == "bert"
    assert numpy.allclose(numpy.linalg.norm(module.AttnEmbedding(model, normalize=True).get_query_embedding("the sea")), 1)
    if library == "stand-in":
        return
    from llama_index.core import VectorStoreIndex  # type: ignore[import-not-found, unused-ignore]
    from llama_index.core.schema import TextNode  # type: ignore[import-not-found, unused-ignore]

    index = VectorStoreIndex([TextNode(text=text) for text in TEXTS], embed_model=module.AttnEmbedding(model))
    found = index.as_retriever(similarity_top_k=3).retrieve("the sea")
    scores = model.similarity(model.encode_query("the sea"), model.encode_document(TEXTS))[0]
    assert [each.node.text for each in found] == [TEXTS[i] for i in numpy.argsort(-scores)]
