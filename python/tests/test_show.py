"""What a notebook is given, and that a browser draws it."""

import json
import os
import queue
import shutil
import subprocess
import threading
from html import escape
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attn
import attn._show
import numpy
import pytest


class Parsed(HTMLParser):
    """The element's attributes, the words of the table in it, and the script."""

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


def test_of_a_model(sentiment: attn.TextModel) -> None:
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


def test_of_arrays() -> None:
    weights = numpy.random.default_rng(1).random((1, 1, 2, 3))
    view = attn.show(weights, ["a", "<b>&\"'</script>"], keys=["x", "y", "z"], caption="<i>", threshold=0.1, scale="row")
    parsed = Parsed(view)
    assert parsed.tags[0] == "attention-map"
    assert {"script", "table", "td"} >= set(parsed.tags) - {"attention-map", "caption", "tr", "th"}
    assert json.loads(parsed.attributes["tokens"]) == ["a", "<b>&\"'</script>"]
    assert json.loads(parsed.attributes["keys"]) == ["x", "y", "z"]
    assert (parsed.attributes["scale"], parsed.attributes["threshold"]) == ("row", "0.1")
    assert parsed.tags.count("td") == 6


def test_large_ones_have_no_table() -> None:
    view = attn.show(numpy.eye(200), [str(i) for i in range(200)])
    assert "table" not in Parsed(view).tags
    assert "200 × 200" in "".join(Parsed(view).words)


def test_what_cannot_be_shown(sentiment: attn.TextModel) -> None:
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


def test_without_the_script_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attn._show, "_script", lambda: None)
    parsed = Parsed(attn.show(numpy.eye(2), ["a", "b"]))
    assert "attention-map" not in parsed.tags
    assert parsed.tags.count("td") == 4
    assert "without" in " ".join(parsed.words) or "Node was not" in " ".join(parsed.words)


def test_a_page_of_its_own(tmp_path: Path) -> None:
    attn.show(numpy.eye(2), ["a", "b"]).save(tmp_path / "map.html")
    page = (tmp_path / "map.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "http:" not in page.replace("http://www.w3.org/", "")
    assert "https:" not in page


@pytest.fixture(scope="session")
def chromium() -> str:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None and os.environ.get("CI") != "true":
        pytest.skip("Chromium is not there")
    assert program is not None
    return program


# As Jupyter puts an output into its page: scripts that innerHTML leaves alone are made anew. The frame is where it is seen: others are not drawn.
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
const look = (map) => {
  const canvas = map.shadowRoot.querySelector('canvas');
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let [dark, light, blue] = [0, 0, 0];
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] < 200) continue;
    const [r, g, b] = pixels.slice(i, i + 3);
    dark += r + g + b < 150;
    light += Math.min(r, g, b) > 200;
    blue += g > r + 30;
  }
  return { width: canvas.width, dark, light, coloured: blue, label: canvas.ariaLabel, table: map.querySelector('table').getClientRects().length };
};
const wait = () => {
  const maps = [...document.querySelectorAll('attention-map')];
  if (inFrame === undefined || maps.some((map) => !map.shadowRoot?.querySelector('canvas').ariaLabel)) return setTimeout(wait, 20);
  fetch('/seen', { method: 'POST', body: JSON.stringify({ maps: maps.map(look), inFrame }) });
};
wait();
</script>"""

frame = """<body>OUTPUT<script>
const wait = () => {
  const canvas = document.querySelector('attention-map').shadowRoot?.querySelector('canvas');
  if (canvas?.ariaLabel) parent.postMessage(canvas.width, '*');
  else setTimeout(wait, 20);
};
wait();
</script>"""


class Seen(BaseHTTPRequestHandler):
    """Gives a page, and hears what it saw."""

    page = b""
    seen: "queue.Queue[bytes]" = queue.Queue()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.page if self.path == "/" else b"")

    def do_POST(self) -> None:
        self.seen.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_chromium_draws_it(chromium: str, tmp_path: Path, sentiment: attn.TextModel) -> None:
    output = attn.show(sentiment, "not bad")._repr_html_()
    in_script = json.dumps(json.dumps(output)).replace("</", "<\\/")
    Seen.page = notebook.replace("FRAME", escape(frame.replace("OUTPUT", output))).replace("OUTPUT", in_script).encode()
    quiet = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"
    with ThreadingHTTPServer(("127.0.0.1", 0), Seen) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # No name has an address: it needs nothing of the network.
        options = [*quiet.split(), "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={tmp_path / 'profile'}"]
        page = f"http://127.0.0.1:{server.server_port}/"
        browser = subprocess.Popen([chromium, *options, page], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            seen = json.loads(Seen.seen.get(timeout=60))
        finally:
            browser.terminate()
            browser.wait(20)
            server.shutdown()
    light, dark = seen["maps"]
    for each in (light, dark):
        assert each["width"] > 100
        assert "4 rows that look" in each["label"]
        assert each["coloured"] > 100
        assert each["table"] == 0  # the map stands for it
    assert light["dark"] > dark["dark"]
    assert dark["light"] > light["light"]
    assert seen["inFrame"] > 100
