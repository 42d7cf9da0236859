"""testdata/vision: for every family of image models a small checkpoint with random weights, written by transformers, its golden numbers, and images
preprocessed by PIL."""

import json
import shutil

import numpy as np
import PIL.Image
import torch
import transformers
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

import common
from decoders import in_float64
from models import labels

FOLDER = common.TESTDATA / "vision"
PROCESSORS = {"ViT": ViTImageProcessorPil, "DeiT": DeiTImageProcessorPil, "Bit": BitImageProcessorPil}
SIZES = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "image_size": 32, "patch_size": 8}
VIT_SIZES = {**SIZES, "intermediate_size": 48}
DINO_SIZES = {**SIZES, "mlp_ratio": 2, "image_size": 28, "patch_size": 7}
ANIMALS = labels(["ant", "bee", "cat", "dog", "emu"])
SQUARE, EDGE = {"height": 32, "width": 32}, {"shortest_edge": 32}

def picture(name, height, width, channels=3):
    """Gradients, a disc with sharp edges, and noise: (height, width, channels) of bytes."""
    y, x = np.mgrid[0:height, 0:width]
    smooth = np.stack([255 * x / width, 255 * y / height, 128 + 100 * np.sin(x / 5 + y / 9), 200 + 0 * x], -1)
    disc = ((x - width / 2) ** 2 + (y - height / 3) ** 2 < (min(height, width) / 4) ** 2)[..., None]
    noise = common.Draw(name).normal(height, width, 4, std=20).numpy()
    return np.clip(np.where(disc, 255 - smooth, smooth) + noise, 0, 255).astype(np.uint8)[..., :channels]

def pil(bytes_of_image):
    image = PIL.Image.fromarray(bytes_of_image[..., 0] if bytes_of_image.shape[-1] == 1 else bytes_of_image)
    return image.convert("RGB")

def draw(name, key, shape):
    values = common.Draw(f"{name}/{key}").normal(*shape)
    if ("norm" in key and key.endswith("weight")) or "lambda" in key:
        return 1 + 0.25 * values
    if key.endswith("bias"):
        return 0.2 * values
    if key.endswith(("position_embeddings", "token", "tokens")):
        return 0.5 * values
    return 1.4 * torch.Size(shape[1:]).numel() ** -0.5 * values

def checkpoints():
    """(name, model, dtype, processor, its settings)"""
    t = transformers
    vit, deit = t.ViTConfig(**VIT_SIZES, **ANIMALS), t.DeiTConfig(**VIT_SIZES, **ANIMALS)
    crop = {"size": {"height": 36, "width": 36}, "crop_size": SQUARE}
    edge = {"size": EDGE, "crop_size": {"height": 28, "width": 28}}
    yield "tiny-vit", t.ViTForImageClassification(vit), torch.float32, "ViT", {"size": SQUARE}
    yield "tiny-vit-model", t.ViTModel(t.ViTConfig(**VIT_SIZES, qkv_bias=False, pooler_output_size=24)), torch.float16, "ViT", {"size": SQUARE}
    yield "tiny-deit", t.DeiTForImageClassification(deit), torch.float16, "DeiT", crop
    yield "tiny-deit-teacher", t.DeiTForImageClassificationWithTeacher(deit), torch.float16, "DeiT", crop
    yield "tiny-deit-model", t.DeiTModel(t.DeiTConfig(**VIT_SIZES)), torch.float16, "DeiT", crop
    yield "tiny-dinov2", t.Dinov2ForImageClassification(t.Dinov2Config(**DINO_SIZES, **ANIMALS)), torch.float32, "Bit", edge
    yield "tiny-dinov2-gated", t.Dinov2Model(t.Dinov2Config(**DINO_SIZES, use_swiglu_ffn=True)), torch.float16, "Bit", edge
    registers = t.Dinov2WithRegistersConfig(**DINO_SIZES, num_register_tokens=3, **ANIMALS)
    yield "tiny-dinov2-registers", t.Dinov2WithRegistersForImageClassification(registers), torch.float16, "Bit", edge

def load(folder, dtype):
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(folder).architectures[0])
    model, report = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"], (folder.name, report)
    return model.to(dtype).eval()

def run(model, pixels):
    more = {} if "dinov2" in model.config.model_type else {"interpolate_pos_encoding": True}
    base = getattr(model, model.base_model_prefix, model)
    out = base(pixels.to(model.dtype), output_attentions=True, output_hidden_states=True, **more)
    last = out.last_hidden_state
    first = 1 + (model.config.model_type == "deit") + getattr(model.config, "num_register_tokens", 0)
    results = {"lastHiddenState": last, "cls": last[:, 0], "mean": last[:, first:].mean(1)}
    results |= {f"hiddenStates.{i}": x for i, x in enumerate(out.hidden_states[:-1])}
    results |= {f"attentions.{i}": x for i, x in enumerate(out.attentions)}
    if base is not model:
        results["logits"] = model(pixels.to(model.dtype), **more).logits
        results["probabilities"] = results["logits"].softmax(-1)
    elif "dinov2" not in model.config.model_type:
        results["pooler"] = out.pooler_output
    return results

def write_numbers(name, folder, processor):
    golden = common.GoldenFile(checkpoint=name, transformers=transformers.__version__)
    single, double = load(folder, torch.float32), load(folder, torch.float64)
    of = lambda image: processor(images=[pil(image)], return_tensors="pt")["pixel_values"]
    batch = torch.cat([of(picture("first", 61, 45)), of(picture("second", 30, 48))])
    size, patch = single.config.image_size, single.config.patch_size
    wide = common.Draw(f"{name}/wide").normal(1, 3, size - patch, size + 2 * patch + 3)
    for case, pixels in {"images": batch, "wide": wide}.items():
        described = {"name": case, "op": "image_model", "inputs": ["pixel_values"], "expected": {}}
        golden.cases.append(described)
        golden.add(f"{case}/pixel_values", pixels)
        values32 = run(single, pixels)
        with in_float64():
            values64 = run(double, pixels)
        for key, value in values64.items():
            assert value.dtype == torch.float64, key
            error = common.max_error(values32[key], value)
            assert error < 1e-4, (name, case, key, error)
            golden.add(f"{case}/expected.{key}", value)
            described["expected"][key] = error
    golden.write(FOLDER / f"{name}.safetensors", limit=150_000)

def write_preprocessing():
    """Pixel values of PIL and of transformers' image processors."""
    golden = common.GoldenFile(pillow=PIL.__version__, transformers=transformers.__version__)
    cases = {
        "smaller": ("ViT", (61, 45, 3), {"size": SQUARE}),
        "larger": ("ViT", (13, 20, 3), {"size": SQUARE}),
        "smaller, bicubic": ("ViT", (61, 45, 3), {"size": {"height": 24, "width": 17}, "resample": 3}),
        "much smaller": ("DeiT", (75, 9, 3), {"size": {"height": 10, "width": 10}, "crop_size": {"height": 7, "width": 6}}),
        "larger, bicubic, tall": ("Bit", (20, 13, 3), {"size": EDGE, "crop_size": {"height": 28, "width": 28}}),
        "smaller, bicubic, wide": ("Bit", (44, 61, 3), {"size": EDGE, "crop_size": {"height": 28, "width": 31}}),
        "border": ("Bit", (20, 35, 3), {"do_resize": False, "crop_size": {"height": 29, "width": 28}}),
        "as it is": ("ViT", (11, 17, 3), {"do_resize": False, "do_normalize": False}),
        "bytes": ("ViT", (30, 20, 3), {"size": SQUARE, "do_rescale": False, "do_normalize": False}),
        "grey": ("ViT", (25, 40, 1), {"size": SQUARE}),
        "with alpha": ("Bit", (40, 40, 4), {"size": EDGE, "crop_size": {"height": 28, "width": 28}}),
    }
    for name, (kind, dims, settings) in cases.items():
        processor = PROCESSORS[kind](**settings)
        image = picture(name, *dims)
        pixels = processor(images=[pil(image)], return_tensors="pt")["pixel_values"]

        described = {"name": name, "op": "preprocess", "inputs": ["image"], "processor": processor.to_dict(), "expected": {"pixelValues": 0}}
        golden.cases.append(described)
        golden.add(f"{name}/image", torch.from_numpy(image.astype(np.float16)))
        golden.add(f"{name}/expected.pixelValues", pixels)
    golden.write(FOLDER / "preprocessing.safetensors", limit=300_000)

def generate():
    FOLDER.mkdir(exist_ok=True)
    for name, model, dtype, kind, settings in checkpoints():
        model.load_state_dict({key: draw(name, key, tuple(value.shape)) for key, value in model.state_dict().items()})
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        model.to(dtype).save_pretrained(folder)
        processor = PROCESSORS[kind](**settings)
        (folder / "preprocessor_config.json").write_text(json.dumps(processor.to_dict(), indent=2, sort_keys=True) + "\n")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= 200_000, (name, size)
        print(f"{folder.relative_to(common.ROOT)}: {size} bytes")
        write_numbers(name, folder, processor)
    write_preprocessing()

if __name__ == "__main__":
    generate()
