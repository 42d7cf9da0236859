"""Sentence embeddings by attn and by sentence-transformers: time of the import, processor time, memory, and how far the vectors differ.

python sentences.py MODEL [--texts N]      (needs sentence-transformers)
Each library computes all texts in its own process on one thread; times are the process's, whatever else the machine does.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = ["sentence-transformers", "attn float32", "attn int8"]

ONE = """
import json, resource, sys, time
import numpy as np
library, model, texts, result = sys.argv[1:]
texts = json.load(open(texts))
before = time.process_time()
if library == "sentence-transformers":
    import torch
    from sentence_transformers import SentenceTransformer
    imported = time.process_time() - before
    torch.set_num_threads(1)
    loaded = SentenceTransformer(model, device="cpu")
    embed = lambda texts: loaded.encode(texts, batch_size=32, show_progress_bar=False)
else:
    import attn
    imported = time.process_time() - before
    embed = attn.TextModel.load(model, weights=library.removeprefix("attn ")).embed
embed(texts[:8])
before = time.process_time()
vectors = embed(texts)
print(json.dumps([imported, time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
np.save(result, vectors)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=2000)
    options = parser.parse_args()
    files = [ROOT / "testdata" / "sentiment" / name for name in ("films.json", "products.json")]
    texts = [each["text"] for file in files for each in json.loads(file.read_text("utf-8"))["texts"]][: options.texts]
    with tempfile.TemporaryDirectory() as folder:
        given = pathlib.Path(folder) / "texts.json"
        given.write_text(json.dumps(texts))
        vectors = {}
        print(f"{len(texts)} texts")
        for library in LIBRARIES:
            result = pathlib.Path(folder) / "vectors.npy"
            done = subprocess.run([sys.executable, "-c", ONE, library, options.model, given, result], capture_output=True, text=True, check=True)
            imported, seconds, memory = json.loads(done.stdout.splitlines()[-1])
            vectors[library] = np.load(result).astype(float)
            print(f"{library}: import {imported:.2f} s, {seconds:.1f} s, at most {memory:.0f} MB")
    peer = vectors[LIBRARIES[0]]
    for library in LIBRARIES[1:]:
        own = vectors[library]
        cosines = (own * peer).sum(axis=1) / np.linalg.norm(own, axis=1) / np.linalg.norm(peer, axis=1)
        print(f"{library}: largest difference {np.abs(own - peer).max():.1e}, least cosine {cosines.min():.7f}")


if __name__ == "__main__":
    main()
