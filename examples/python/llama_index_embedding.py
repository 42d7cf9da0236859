"""A text model of attn as the embedding model of LlamaIndex, with the model's own prompts for queries and documents.

It needs the package llama-index-core. Give it to an index, VectorStoreIndex(nodes, embed_model=AttnEmbedding(path)), or to Settings.embed_model.
"""

import os
from typing import Any

import attn
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr


class AttnEmbedding(BaseEmbedding):
    """model: a TextModel, or the path or id of one. options: those of TextModel.encode, for example normalize=True."""

    _model: attn.TextModel = PrivateAttr()
    _options: dict[str, Any] = PrivateAttr()

    def __init__(self, model: attn.TextModel | str | os.PathLike[str], *, embed_batch_size: int = 32, **options: Any) -> None:
        name = model.config["model_type"] if isinstance(model, attn.TextModel) else os.fspath(model)
        super().__init__(model_name=name, embed_batch_size=embed_batch_size)
        self._model = model if isinstance(model, attn.TextModel) else attn.TextModel.load(model)
        self._options = options

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._model.encode_query(query, **self._options).tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode_document(texts, **self._options).tolist()
        return vectors
