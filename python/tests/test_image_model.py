"""Image models, compared with transformers and Pillow."""

import base64
import copy
import json
import pickle
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import attn
import numpy
import pytest

from golden import cases, testdata

vision = testdata / "vision"
names = sorted(path.stem for path in vision.glob("tiny-*.safetensors"))


def load(name: str = "tiny-vit", **options: Any) -> attn.ImageModel:
    return attn.ImageModel.load(vision / name, **options)


def picture(height: int, width: int, channels: int = 3, seed: int = 1) -> numpy.ndarray:
    return numpy.random.default_rng(seed).integers(0, 256, (height, width, channels), numpy.uint8)


@pytest.mark.parametrize("name", names)
def test_forward_agrees_with_transformers(name: str) -> None:
    model = load(name)
    count = 0
    for case in cases(f"vision/{name}", "image_model"):
        output = model(case.tensor("pixel_values"), output_attentions=True, output_hidden_states=True)
        count += case.check_forward(output)
    assert count >= 4


def test_images_are_preprocessed_as_by_transformers(tmp_path: Path) -> None:
    shutil.copytree(vision / "tiny-vit", tmp_path, dirs_exist_ok=True)
    count = 0
    for case in cases("vision/preprocessing", "preprocess"):
        processor = case["processor"]
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
        model = attn.ImageModel.load(tmp_path)
        image = case.tensor("image").astype(numpy.uint8)
        inputs = model.preprocess(image)
        expected = case.tensor("expected.pixelValues")
        level = (processor.get("rescale_factor", 1 / 255) if processor.get("do_rescale", True) else 1) / (
            min(processor["image_std"]) if processor.get("do_normalize", True) else 1
        )
        assert inputs.pixel_values.shape == expected.shape
        assert numpy.abs(inputs.pixel_values - expected).max() <= 1.001 * level, case["name"]
        count += 1
        if min(expected.shape[2:]) < 8:
            continue
        output = model(**inputs)
        assert numpy.array_equal(model.embed(image)[0], output.last_hidden_state[0, 0])
        assert numpy.allclose(model.embed(image, pooling="mean")[0], output.last_hidden_state[0, 1:].mean(axis=0), atol=1e-5)
        probabilities = attn.softmax(output.logits)[0]
        assert [(model.labels[i], probabilities[i]) for i in numpy.argsort(-probabilities)] == [
            (each.label, pytest.approx(each.score, abs=1e-6)) for each in model.classify(image)[0]
        ]
    assert count >= 10


def test_the_model_of_digits_reads_them() -> None:
    model = attn.ImageModel.load(testdata / "vision" / "digits")
    drawn = json.loads((vision / "digits.json").read_text())
    assert len(drawn) == 10
    for case in drawn:
        image = numpy.frombuffer(base64.b64decode(case["image"]), numpy.uint8).reshape(32, 32)
        assert numpy.abs(model(model.preprocess(image)).logits[0] - case["logits"]).max() < 1e-4
        assert model.classify(image, top_k=1)[0][0].label == str(case["digit"])


def test_images_have_many_forms() -> None:
    model = load()
    image = picture(40, 50)
    expected = model.preprocess(image).pixel_values
    assert model.preprocess(image).grid == (4, 4)
    rgba = numpy.dstack([image, picture(40, 50, 1, seed=2)])
    for given in ([image], (image,), image[numpy.newaxis], rgba, numpy.asfortranarray(image), image[::-1][::-1]):
        assert numpy.array_equal(model.preprocess(given).pixel_values, expected)
    grey = image[..., 0]
    assert numpy.array_equal(model.preprocess(grey).pixel_values, model.preprocess(numpy.dstack([grey] * 3)).pixel_values)
    several = [image, grey, picture(9, 9)]
    together = model.preprocess(several).pixel_values
    for i, each in enumerate(several):
        assert numpy.array_equal(model.preprocess(each).pixel_values[0], together[i])
        assert numpy.array_equal(model.embed(each)[0], model.embed(several)[i])
    assert model.embed([]).shape == (0, 32)
    assert model.classify([]) == []


def test_crops_are_the_part_that_the_model_sees(tmp_path: Path) -> None:
    shutil.copytree(vision / "tiny-vit", tmp_path, dirs_exist_ok=True)
    config = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 16}, "crop_size": 8}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    wide, tall = picture(20, 40), picture(40, 20)
    inputs = attn.ImageModel.load(tmp_path).preprocess([wide, tall])
    assert inputs.crops == [attn.ImageCrop(left=15, top=5, width=10, height=10), (5, 15, 10, 10)]
    assert "crops" in repr(inputs)


def test_images_of_pillow() -> None:
    pillow = pytest.importorskip("PIL.Image")
    model = load()
    image = picture(40, 50)
    expected = model.preprocess(image).pixel_values
    assert numpy.array_equal(model.preprocess(pillow.fromarray(image)).pixel_values, expected)
    rgba = pillow.fromarray(numpy.dstack([image, picture(40, 50, 1, seed=2)]))
    assert numpy.array_equal(model.preprocess([rgba]).pixel_values, expected)
    for mode in ("I", "I;16", "F"):
        with pytest.raises(attn.DtypeError, match=f"of mode {mode}, expected an image with 8 bits per channel. Scale its numbers"):
            model.preprocess(pillow.new(mode, (8, 8)))
    grey = pillow.fromarray(image[..., 0])
    assert numpy.array_equal(model.preprocess(grey).pixel_values, model.preprocess(image[..., 0]).pixel_values)


def test_progress_and_interruption() -> None:
    model = load(threads=2)
    seen: list[tuple[int, int]] = []
    model.embed([picture(8, 8), picture(9, 9)], on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]

    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        model.classify([picture(8, 8)] * 3, on_progress=stop)
    assert model.embed(picture(8, 8)).shape == (1, 32)

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    large = picture(2000, 2000)
    started = time.monotonic()
    model.preprocess(large)
    of_one = time.monotonic() - started
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            model.preprocess([large] * 1000)
        assert time.monotonic() - started < 0.1 + 500 * of_one
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_models_of_other_images_than_rgb_take_pixel_values(tmp_path: Path) -> None:
    config = json.loads((vision / "tiny-vit" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_channels": 1}))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5], "image_std": [0.5]}))
    state = dict(load().state_dict())
    name = "vit.embeddings.patch_embeddings.projection.weight"
    state[name] = state[name][:, :1].copy()
    (tmp_path / "model.safetensors").write_bytes(attn.write_safetensors(state))
    model = attn.ImageModel.load(tmp_path)
    assert model(numpy.zeros((1, 1, 32, 32), numpy.float32)).logits.shape == (1, 5)
    assert model.config["num_channels"] == 1
    for method in (model.preprocess, model.embed, model.classify):
        with pytest.raises(attn.UnsupportedError, match="3 channels"):
            method(picture(8, 8))


def test_settings_that_are_off_are_not_read(tmp_path: Path) -> None:
    shutil.copytree(vision / "tiny-vit", tmp_path, dirs_exist_ok=True)
    off = {"do_normalize": False, "image_std": [0, 0, 0], "do_center_crop": False, "crop_size": {"shortest_edge": 5}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(off))
    inputs = attn.ImageModel.load(tmp_path).preprocess(numpy.full((8, 8, 3), 255, numpy.uint8))
    assert numpy.all(inputs.pixel_values == 1)


def test_heads_can_be_removed_layers_patched_and_traced() -> None:
    model = load()
    inputs = model.preprocess(picture(40, 50))
    plain = model(inputs, output_hidden_states=True, trace=["merged"], trace_layers=[-1])
    assert list(plain.trace) == [1]
    assert plain.trace[1]["merged"].shape == (1, 17, 32)
    off = model(inputs, head_mask=numpy.zeros((2, 4)), output_logits=False)
    assert off.logits is None
    assert not numpy.array_equal(off.last_hidden_state, plain.last_hidden_state)
    other = model.preprocess(picture(9, 9))
    patched = model(other, patch=attn.LayerPatch(0, hidden_state=plain.hidden_states[0]))
    assert numpy.array_equal(patched.logits, plain.logits)


def test_weights_and_state() -> None:
    model, int8 = load(), load(weights="int8")
    assert (model.weights, int8.weights) == ("float32", "int8")
    inputs = model.preprocess(picture(40, 50))
    assert numpy.allclose(int8(inputs).logits, model(inputs).logits, atol=0.05)
    state = model.state_dict()
    assert state["vit.embeddings.position_embeddings"].shape == (1, 17, 32)
    before = model(inputs).logits
    model.load_state_dict({**state, "classifier.bias": state["classifier.bias"] + 1})
    assert numpy.allclose(model(inputs).logits, before + 1, atol=1e-5)
    assert repr(model) == "<attn.ImageModel: image-classification, 2 layers, 4 heads, float32>"


@pytest.mark.parametrize("name", names)
def test_a_saved_model_is_the_same(name: str, tmp_path: Path) -> None:
    model = load(name)
    image = picture(40, 50)
    expected = model(model.preprocess(image)).last_hidden_state
    for same in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert repr(same) == repr(model)
        assert numpy.array_equal(same(same.preprocess(image)).last_hidden_state, expected)
    before = {each.name: each.read_bytes() for each in (vision / name).iterdir()}
    for weights in ("float32", "float16", "int8"):
        model.save_pretrained(tmp_path / weights, weights=weights)
        again = attn.ImageModel.load(tmp_path / weights)
        assert again.weights == ("int8" if weights == "int8" else "float32")
        got = again(again.preprocess(image)).last_hidden_state
        # Weights of int8 files are those that load() makes; float16 rounds by at most 2**-11.
        wanted = load(name, weights="int8")(again.preprocess(image)).last_hidden_state if weights == "int8" else expected
        assert numpy.allclose(got, wanted, rtol=0, atol=0.02 if weights == "float16" else 0)
        assert json.loads((tmp_path / weights / "config.json").read_text())["architectures"] == model.config["architectures"]
        assert (tmp_path / weights / "preprocessor_config.json").read_bytes() == before["preprocessor_config.json"]
    int8 = attn.ImageModel.load(vision / name, weights="int8")
    int8.save_pretrained(tmp_path / "again")
    again = attn.ImageModel.load(tmp_path / "again")
    inputs = int8.preprocess(image)
    assert numpy.array_equal(again(inputs).last_hidden_state, int8(inputs).last_hidden_state)
    state = model.state_dict()
    bias = next(name for name in state if name.endswith("layernorm.bias"))
    model.load_state_dict({**state, bias: state[bias] + 1})
    changed = pickle.loads(pickle.dumps(model))
    assert not numpy.array_equal(changed(inputs).last_hidden_state, expected)
    with pytest.raises(attn.UnwritableError, match="path is unwritable"):
        model.save_pretrained("/proc/none")


def test_wrong_arguments(tmp_path: Path) -> None:
    model = load()
    image = picture(8, 8)
    for wrong, error, words in [
        ("cat.png", attn.ArgumentError, "images is str|images is a str"),
        (None, attn.ArgumentError, "images is NoneType, expected an image of PIL, an array"),
        ([image, 3], attn.ArgumentError, r"images\[1\]"),
        (image.astype(numpy.float32), attn.DtypeError, r"uint8 .* If 1 is white, write \(255 \* x\)"),
        ([image / 255], attn.DtypeError, r"images\[0\]"),
        (numpy.zeros((0, 4, 3), numpy.uint8), attn.ShapeError, r"\(0,4,3\)"),
        (numpy.zeros((4, 4, 2), numpy.uint8), attn.ShapeError, "channels"),
        (numpy.zeros(4, numpy.uint8), attn.ShapeError, "height,width"),
        (numpy.zeros((3, 8, 8), numpy.uint8), attn.ShapeError, "channels"),
    ]:
        for method in (model.preprocess, model.embed, model.classify):
            with pytest.raises(error, match=words):
                method(wrong)
    with pytest.raises(attn.ArgumentError, match="masked"):
        model.embed(numpy.ma.masked_array(image, mask=True))
    with pytest.raises(attn.ArgumentError, match="at least one image"):
        model.preprocess([])
    assert model.embed([]).shape == (0, 32)
    assert model.classify([]) == []
    with pytest.raises(attn.ConfigError, match="cls, mean"):
        model.embed(image, pooling="max")
    with pytest.raises(attn.UnsupportedError, match="cls or mean"):
        model.embed(image, pooling="pooler")
    with pytest.raises(attn.ConfigError, match="top_k"):
        model.classify(image, top_k=0)
    with pytest.raises(attn.ShapeError, match="pixel_values"):
        model(numpy.zeros((3, 32, 32), numpy.float32))
    with pytest.raises(attn.UnknownArgumentError, match="on_progress"):
        model.embed(image, verbose=True)
    with pytest.raises(attn.UnsupportedError, match="image-classification"):
        load("tiny-vit-model").classify(image)
    assert load("tiny-vit-model").embed(image, pooling="pooler").shape == (1, 24)
    with pytest.raises(attn.UnsupportedError, match="TextModel has text models"):
        attn.ImageModel.load(testdata / "models" / "sentiment")
    with pytest.raises(attn.UnsupportedError, match="ImageModel"):
        attn.TextModel.load(vision / "tiny-vit")
    with pytest.raises(FileNotFoundError):
        attn.ImageModel.load(tmp_path / "nothing")
    with pytest.raises(attn.ArgumentError, match=r"ImageModel\.load\(path\)"):
        attn.ImageModel()
