"""A text model of attn as the embeddings of LangChain, with the model's own prompts for queries and documents.

It needs the package langchain-core. As a program it searches: python examples/python/langchain_embeddings.py MODEL QUERY TEXT...
"""

import os
import sys
from typing import Any

import attn
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore


class AttnEmbeddings(Embeddings):
    """model: a TextModel, or the path or id of one. options: those of TextModel.encode, for example normalize=True or batch_size=8."""

    def __init__(self, model: attn.TextModel | str | os.PathLike[str], **options: Any) -> None:
        self.model = model if isinstance(model, attn.TextModel) else attn.TextModel.load(model)
        self.options = options

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.model.encode_document(texts, **self.options).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self.model.encode_query(text, **self.options).tolist()
        return vector


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    _, path, query, *texts = sys.argv
    store = InMemoryVectorStore(AttnEmbeddings(path))
    store.add_texts(texts)
    for document, score in store.similarity_search_with_score(query, k=3):
        print(f"{score:.3f} {document.page_content}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
