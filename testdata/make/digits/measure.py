"""Counts which digits testdata/vision/digits reads, and writes its README.md and testdata/vision/digits.json: drawings with PyTorch's logits."""

import base64
import json
import string
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw
import torch
import torch.nn.functional as F
import train
import transformers

FOLDER = train.ROOT / "testdata" / "vision" / "digits"
NUMBERS = train.ROOT / "testdata" / "vision" / "digits.json"

# Lines in a box of 20 × 20; of an ellipse the box.
ROUND = "round"
DRAWINGS = {
    0: [(ROUND, 3, 0, 17, 20)],
    1: [(6, 5, 11, 0, 11, 20)],
    2: [(3, 5, 5, 1, 10, 0, 15, 2, 16, 6, 13, 11, 3, 20, 17, 20)],
    3: [(4, 2, 9, 0, 15, 2, 15, 6, 12, 9, 8, 9, 13, 10, 16, 14, 15, 18, 10, 20, 4, 18)],
    4: [(12, 20, 12, 0, 3, 14, 17, 14)],
    5: [(16, 0, 5, 0, 4, 9, 10, 7, 15, 10, 16, 15, 12, 20, 4, 18)],
    6: [(13, 0, 7, 5, 4, 12, 5, 18, 10, 20, 15, 18, 16, 13, 12, 10, 7, 11, 4, 14)],
    7: [(3, 0, 17, 0, 8, 20)],
    8: [(15, 3, 10, 0, 5, 3, 6, 8, 14, 12, 15, 17, 10, 20, 5, 17, 6, 12, 14, 8, 15, 3)],
    9: [(15, 6, 12, 9, 7, 9, 4, 5, 7, 1, 12, 0, 15, 4, 14, 12, 12, 20)],
}


def drawing(digit):
    """Bytes (32,32): black on white."""
    image = PIL.Image.new("L", (128, 128), 255)
    draw = PIL.ImageDraw.Draw(image)
    scale = lambda values: [24 + 4 * value for value in values]  # noqa: E731
    for each in DRAWINGS[digit]:
        if each[0] == ROUND:
            draw.ellipse(scale(each[1:]), outline=0, width=10)
        else:
            draw.line(scale(each), fill=0, width=10, joint="curve")
    return np.asarray(image.resize((train.SIDE, train.SIDE), PIL.Image.Resampling.BOX))


def pixels_of(images):
    """Normalized images (B,3,32,32) of grey bytes."""
    return (torch.from_numpy(np.stack(images)).float() / 127.5 - 1)[:, None].repeat(1, 3, 1, 1)


def plain(digits):
    """Black on white, 20 pixels high in the middle."""
    ink = F.pad(digits[:, None], (2, 2, 2, 2))
    return (1 - 2 * ink).repeat(1, 3, 1, 1)


@torch.no_grad()
def share(model, images, labels, image_of):
    found = torch.cat([model(image_of(part)).logits.argmax(1) for part in images.split(1000)])
    return (found == labels).float().mean().item()


@torch.no_grad()
def main():
    model = transformers.ViTForImageClassification.from_pretrained(FOLDER).eval()
    images, labels = train.mnist("t10k")
    generator = torch.Generator().manual_seed(train.SEED)
    numbers = {
        "weights": f"{sum(p.numel() for p in model.parameters()):,}".replace(",", " "),
        "right": f"{100 * share(model, images, labels, lambda part: train.drawn(part, generator)):.1f}",
        "plain": f"{100 * share(model, images, labels, plain):.1f}",
        "steps": f"{train.STEPS:,}".replace(",", " "),
        "batch": train.BATCH,
    }
    print(json.dumps(numbers))
    card = string.Template((Path(__file__).parent / "card.md").read_text("utf-8"))
    (FOLDER / "README.md").write_text(card.substitute(numbers), "utf-8")
    drawn = [drawing(digit) for digit in DRAWINGS]
    logits = model(pixels_of(drawn)).logits
    print("read as", logits.argmax(1).tolist(), "with", [f"{each:.2f}" for each in logits.softmax(1).amax(1).tolist()])
    cases = [
        json.dumps({"digit": digit, "image": base64.b64encode(image.tobytes()).decode(), "logits": [round(each, 5) for each in row]})
        for digit, image, row in zip(DRAWINGS, drawn, logits.tolist(), strict=True)
    ]
    NUMBERS.write_text("[\n" + ",\n".join(cases) + "\n]\n")


if __name__ == "__main__":
    main()
