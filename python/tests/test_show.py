"""attn.show(): the HTML for notebooks, and its map in a browser."""

import base64
import json
import struct
import zlib
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attn
import attn._pictures
import attn._show
import numpy
import pytest

from browser import LOOK, see
from golden import testdata


class Parsed(HTMLParser):
    """Attributes of the element, texts of its table, and the script."""

    def __init__(self, view: attn.AttentionView) -> None:
        super().__init__()
        self.attributes: dict[str, Any] = {}
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(view._repr_html_())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "attention-map":
            self.attributes = dict(attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_show_draws_a_head_or_the_mean_of_a_model(sentiment: attn.TextModel) -> None:
    view = attn.show(sentiment, "not bad", layer=0, head=3)
    expected = sentiment(sentiment.tokenize("not bad"), output_attentions=True).attentions[0][0, 3]
    assert numpy.array_equal(view.weights, expected)
    parsed = Parsed(view)
    assert json.loads(parsed.attributes["tokens"]) == ["[CLS]", "not", "bad", "[SEP]"]
    assert numpy.abs(numpy.array(json.loads(parsed.attributes["weights"])) - expected).max() < 1e-4
    assert parsed.attributes["caption"] == "layer 0, head 3"
    assert parsed.tags.count("script") == 1
    assert "customElements" in parsed.words[-1]
    assert repr(view) == "<attn.AttentionView: 4 × 4 weights, layer 0, head 3>"
    mean = attn.show(sentiment, ("not bad", "good"))
    assert "mean of 4 heads" in repr(mean)
    assert numpy.allclose(mean.weights.sum(axis=1), 1, atol=1e-5)


def test_show_draws_all_heads_in_one_view(sentiment: attn.TextModel, tmp_path: Path) -> None:
    output = sentiment(sentiment.tokenize("not bad"), output_attentions=True)
    assert output.attentions is not None
    grid = attn.show(sentiment, "not bad", layer="all", head="all", caption="<all>")
    assert repr(grid) == "<attn.AttentionGrid: 2 × 4 maps of 4 × 4 weights>"
    for layer, views in enumerate(grid.views):
        for head, view in enumerate(views):
            assert numpy.array_equal(view.weights, output.attentions[layer][0, head])
            assert repr(view).endswith(f"layer {layer}, head {head}>")
    html = grid._repr_html_()
    assert (html.count("<attention-map "), html.count("<script>"), html.count("<table")) == (8, 1, 0)
    assert "&lt;all&gt;" in html
    grid.save(tmp_path / "heads.html")
    assert (tmp_path / "heads.html").read_text().count("<attention-map ") == 8
    assert [len(views) for views in attn.show(sentiment, "not bad", head="all").views] == [4]
    means = attn.show(sentiment, "not bad", layer="all")
    assert [len(views) for views in means.views] == [1, 1]
    assert numpy.allclose(means.views[1][0].weights, output.attentions[1][0].mean(axis=0))
    with pytest.raises(attn.ShapeError, match=r"shape \(4, 3, 3\), expected .* Choose a text and a head"):
        attn.show(output.attentions[0][:, :, :3, :3], ["a", "b", "c"])
    with pytest.raises(attn.ConfigError, match="show: head is 'every', expected a whole number or 'all'"):
        attn.show(sentiment, "not bad", head="every")  # type: ignore[call-overload]


def test_show_draws_given_weights_and_escapes_labels() -> None:
    weights = numpy.random.default_rng(1).random((1, 1, 2, 3))
    view = attn.show(weights, ["a", "<b>&\"'</script>"], keys=["x", "y", "z"], caption="<i>", threshold=0.1, scale="row")
    parsed = Parsed(view)
    assert parsed.tags[0] == "attention-map"
    assert {"script", "table", "td"} >= set(parsed.tags) - {"attention-map", "caption", "tr", "th"}
    assert json.loads(parsed.attributes["tokens"]) == ["a", "<b>&\"'</script>"]
    assert json.loads(parsed.attributes["keys"]) == ["x", "y", "z"]
    assert (parsed.attributes["scale"], parsed.attributes["threshold"]) == ("row", "0.1")
    assert parsed.tags.count("td") == 6


def digits() -> attn.ImageModel:
    return attn.ImageModel.load(testdata / "vision" / "digits")


def a_one(height: int = 60, width: int = 90) -> Any:
    image = numpy.full((height, width, 3), 255, numpy.uint8)
    image[height // 5 : -(height // 5), width // 2 : width // 2 + width // 15] = (0, 10, 20)
    return image


class ImageParsed(HTMLParser):
    """Attributes of the elements over images, and their pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.attributes: list[dict[str, Any]] = []
        self.tags: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "attention-image":
            self.attributes.append(dict(attrs))


def pixels_in(png: bytes) -> Any:
    """(height,width,3) of a PNG file, whose checksums are right."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + data)
        chunks[name] = data
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, bits, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (bits, colours) == (8, 2)
    lines = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), numpy.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_show_draws_an_image_model_over_its_image(tmp_path: Path) -> None:
    model, image = digits(), a_one()
    view = attn.show(model, image, layer=1, head=2)
    assert repr(view) == "<attn.AttentionImageView: 8 × 8 patches, layer 1, head 2>"
    inputs = model.preprocess(image)
    attentions = model(inputs, output_attentions=True).attentions
    assert attentions is not None
    assert numpy.array_equal(view.weights, attentions[1][0, 2])
    parsed = ImageParsed(view._repr_html_())
    (given,) = parsed.attributes
    assert (json.loads(given["grid"]), given["caption"]) == ([8, 8], "layer 1, head 2")
    assert json.loads(given["crop"]) == {"left": 0, "top": 0, "width": 90, "height": 60}
    assert numpy.abs(numpy.array(json.loads(given["weights"])) - view.weights).max() < 1e-4
    assert numpy.array_equal(pixels_in(base64.b64decode(given["src"].removeprefix("data:image/png;base64,"))), image)
    assert (parsed.tags.count("td"), parsed.tags.count("script")) == (64, 1)
    assert numpy.allclose(attn.show(model, [image]).weights, attentions[-1][0].mean(axis=0))
    grid = attn.show(model, image, layer="all", head="all", caption="<all>")
    assert repr(grid) == "<attn.AttentionGrid: 4 × 4 maps of 8 × 8 patches>"
    grid.save(tmp_path / "heads.html")
    html = (tmp_path / "heads.html").read_text()
    assert html.count("<attention-image ") == 16
    assert len(html) < 200_000, "pictures of many heads are small"
    copied = image.copy()
    image[:] = 0
    assert numpy.array_equal(view.image, copied), "a view does not change with the image"


def test_pictures_of_large_and_other_images_are_reduced() -> None:
    crop = attn.ImageCrop(left=100.5, top=-20, width=1000, height=800)
    image = numpy.random.default_rng(3).integers(0, 256, (900, 1500, 3), numpy.uint8)
    small, inside = attn._pictures.reduced(image, crop)
    assert small.shape == (390, 501, 3)
    assert inside == (0.25, -10, 500, 400)
    mean = image[:2, 100:102].astype(int).sum(axis=(0, 1))
    assert numpy.abs(4 * small[0, 0].astype(int) - mean).max() <= 2
    grey = numpy.arange(6, dtype=numpy.uint8).reshape(2, 3)
    for given in (grey, grey[..., None], [grey], grey[None, ..., None], numpy.repeat(grey[..., None], 4, axis=2)):
        assert numpy.array_equal(attn._pictures.pixels_of(given), numpy.repeat(grey[..., None], 3, axis=2))


def test_show_refuses_what_is_no_image() -> None:
    model, image = digits(), a_one()
    for call, error, words in (
        (lambda: attn.show(model, "cat.png"), attn.ArgumentError, "preprocess: images"),
        (lambda: attn.show(model, [image, image]), attn.ArgumentError, "show: image is 2 images, expected one image. Call show"),
        (lambda: attn.show(model, image, layer=4), attn.OutOfRangeError, "show: layer is 4"),
        (lambda: attn.show(model, image, head="each"), attn.ConfigError, "show: head is 'each'"),
        (lambda: attn.show(model, image, threshold=0.5), attn.ArgumentError, "show: threshold is given, expected nothing with an image model"),
        (lambda: attn.show(model, image, keys=["a"]), attn.ArgumentError, "show: keys is given"),
        (lambda: attn.show(model, image, keys=numpy.array(["a", "b"])), attn.ArgumentError, "show: keys is given"),
    ):
        with pytest.raises(error, match=words):
            call()  # type: ignore[no-untyped-call]


def test_large_maps_have_no_table() -> None:
    view = attn.show(numpy.eye(200), [str(i) for i in range(200)])
    assert "table" not in Parsed(view).tags
    assert "200 × 200" in "".join(Parsed(view).words)


def test_show_refuses_invalid_weights_layers_and_heads(sentiment: attn.TextModel) -> None:
    for weights, error in (
        (numpy.ones((2, 3)), attn.ShapeError),
        (numpy.ones((2, 2, 2)), attn.ShapeError),
        (numpy.ones((2, 2), complex), attn.DtypeError),
        ([[1, numpy.nan], [0, 0]], attn.ArgumentError),
    ):
        with pytest.raises(error):
            attn.show(weights, ["a", "b"])
    for options in ({"layer": 2}, {"head": 4}, {"layer": -3}):
        with pytest.raises(attn.OutOfRangeError):
            attn.show(sentiment, "not bad", **options)


def test_show_and_widget_name_wrong_arguments(sentiment: attn.TextModel) -> None:
    show, widget, ones = attn.show, attn.widget, numpy.ones((2, 2))
    for call, error, words in (
        (lambda: show(sentiment, "not bad", layer=1.0), attn.ArgumentError, "show: layer is float"),
        (lambda: show(sentiment, "not bad", layer=None), attn.ArgumentError, "show: layer is NoneType"),
        (lambda: show(sentiment, "not bad", head=[0, 1]), attn.ArgumentError, "show: head is list"),
        (lambda: show(sentiment, "not bad", keys=["a"]), attn.ArgumentError, "show: keys is given"),
        (lambda: show(ones, None), attn.ArgumentError, "show: tokens is NoneType"),
        (lambda: show(ones, [1, 2]), attn.ArgumentError, r"show: tokens\[0\] is int"),
        (lambda: show(ones, "ab", keys=[b"a", "b"]), attn.ArgumentError, r"show: keys\[0\] is bytes"),
        (lambda: show(ones, "ab", caption=3), attn.ArgumentError, "show: caption is int"),
        (lambda: show(ones, "ab", scale="column"), attn.ConfigError, "show: scale is 'column', expected 'head' or 'row'"),
        (lambda: show(ones, "ab", threshold="0.1"), attn.ArgumentError, "show: threshold is '0.1'"),
        (lambda: show(ones, "ab", threshold=float("nan")), attn.ArgumentError, "show: threshold is nan"),
        (lambda: show([[1, 2], [3]], "ab"), attn.ShapeError, "rows of different lengths"),
        (lambda: show(None, "a"), attn.ArgumentError, "show: the first argument is NoneType, expected a TextModel, an ImageModel or weights"),
        (lambda: widget(None, "a"), attn.ArgumentError, "widget: model is NoneType"),
        (lambda: widget(sentiment, "a", layer=1.5), attn.ArgumentError, "widget: layer is float"),
        (lambda: widget(sentiment, "a", scale="x"), attn.ConfigError, "widget: scale is 'x'"),
    ):
        with pytest.raises(error, match=words):
            call()  # type: ignore[no-untyped-call]


def test_an_attribution_is_drawn_as_coloured_tokens(sentiment: attn.TextModel) -> None:
    made = sentiment.attribute("not <bad> at all", method="gradient_x_input")
    html = made._repr_html_()
    assert html.count("<span ") == len(made.tokens)
    assert "<bad>" not in html and ">&lt;</span>" in html
    most = int(numpy.argmax(numpy.abs(made.scores)))
    assert html.split("<span ")[1 + most].count("0.60)") == 1
    assert attn.Attribution(["a"], [(0, 1)], numpy.zeros(1, numpy.float32))._repr_html_().count("0.00)") == 1


def test_a_build_without_the_script_shows_a_table_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attn._show, "script", lambda: None)
    parsed = Parsed(attn.show(numpy.eye(2), ["a", "b"]))
    assert "attention-map" not in parsed.tags
    assert parsed.tags.count("td") == 4
    assert "Node was missing" in " ".join(parsed.words)
    grid = attn.show(attn.TextModel.load(testdata / "models" / "sentiment"), "not", head="all")._repr_html_()
    assert (grid.count("<table>"), "<attention-map" in grid) == (4, False)
    image = attn.show(digits(), a_one(), head="all")._repr_html_()
    assert (image.count("<table>"), "<attention-image" in image) == (4, False)


def test_save_writes_a_self_contained_page(tmp_path: Path) -> None:
    attn.show(numpy.eye(2), ["a", "b"]).save(tmp_path / "map.html")
    page = (tmp_path / "map.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "http:" not in page.replace("http://www.w3.org/", "")
    assert "https:" not in page


# As in Jupyter: innerHTML runs no scripts, so they are created again. Only visible frames draw.
notebook = """<!doctype html><meta charset=utf-8>
<body style="width: 600px">
<script>
let inFrame;
addEventListener('message', ({ data }) => (inFrame = data));
</script>
<iframe sandbox=allow-scripts srcdoc="FRAME"></iframe>
<div id=light style="color: #111"></div><div id=dark style="color: #eee; background: #111"></div>
<script>
const output = JSON.parse(OUTPUT);
for (const id of ['light', 'dark']) {
  const cell = document.getElementById(id);
  cell.innerHTML = output;
  for (const script of cell.querySelectorAll('script')) {
    const again = document.createElement('script');
    again.textContent = script.textContent;
    script.replaceWith(again);
  }
}
LOOK
const inFrameToo = async () => {
  while (inFrame === undefined) await new Promise((done) => setTimeout(done, 20));
};
Promise.all([drawn(), inFrameToo()]).then(([maps]) => tell({ maps, inFrame }));
</script>"""

frame = """<body>OUTPUT<script>
const wait = () => {
  const canvas = document.querySelector('attention-map').shadowRoot?.querySelector('canvas');
  if (canvas?.ariaLabel) parent.postMessage(canvas.width, '*');
  else setTimeout(wait, 20);
};
wait();
</script>"""


def test_chromium_draws_an_image(chromium: str, tmp_path: Path) -> None:
    output = attn.show(digits(), a_one())._repr_html_()
    page = f"<!doctype html><meta charset=utf-8><body style='width: 600px'>{output}<script>{LOOK.replace('attention-map', 'attention-image')}"
    seen = see(chromium, f"{page}drawn().then(tell);</script>", tmp_path)
    (each,) = seen
    assert "8 rows and 8 columns of patches" in each["label"]
    assert (each["coloured"] > 100, each["table"]) == (True, 0)


def test_chromium_draws_the_map(chromium: str, tmp_path: Path, sentiment: attn.TextModel) -> None:
    output = attn.show(sentiment, "not bad")._repr_html_()
    in_script = json.dumps(json.dumps(output)).replace("</", "<\\/")
    page = notebook.replace("LOOK", LOOK).replace("FRAME", escape(frame.replace("OUTPUT", output))).replace("OUTPUT", in_script)
    seen = see(chromium, page, tmp_path)
    light, dark = seen["maps"]
    for each in (light, dark):
        assert each["width"] > 100
        assert "4 rows that look" in each["label"]
        assert each["coloured"] > 100
        assert each["table"] == 0  # hidden by the map
    assert light["dark"] > dark["dark"]
    assert dark["light"] > light["light"]
    assert seen["inFrame"] > 100
