"""The program examples/cluster/ray_embed.py with sentence-transformers on PyTorch instead of attn: the same files, actors and options.

check.py --peer in examples/cluster runs it. The workers need that folder on PYTHONPATH.
"""

import corpus
import ray_embed


class Peer:
    """What corpus.embed_file() needs of a model."""

    def __init__(self, folder, threads):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        self.model = SentenceTransformer(folder, device="cpu")

    def embed(self, texts):
        return self.model.encode(texts, batch_size=32, show_progress_bar=False)


class Embed(ray_embed.Embed):
    def __init__(self, job):
        self.job = job
        self.model = Peer(job.model, job.threads)


if __name__ == "__main__":
    ray_embed.Embed = Embed
    try:
        ray_embed.main()
    except corpus.CorpusError as error:
        raise SystemExit(f"ray_peer: {error}") from None
