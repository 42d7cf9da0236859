"""Runs pages in Chromium that report their observations."""

import json
import queue
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Server(ThreadingHTTPServer):
    page: bytes
    seen: "queue.Queue[bytes]"


class _Handler(BaseHTTPRequestHandler):
    """Serves a page and receives its report."""

    server: _Server

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.server.page if self.path == "/" else b"")

    def do_POST(self) -> None:
        self.server.seen.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def see(chromium: str, page: str, folder: Path) -> Any:
    """Returns the JSON that a page posts to /seen. The page has no network: host names have no address."""
    quiet = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.page, server.seen = page.encode(), queue.Queue()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = [*quiet.split(), "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={folder / 'profile'}"]
        address = f"http://127.0.0.1:{server.server_port}/"
        browser = subprocess.Popen([chromium, *options, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return json.loads(server.seen.get(timeout=60))
        finally:
            browser.terminate()
            browser.wait(20)
            server.shutdown()


LOOK = """
const look = (map) => {
  const canvas = map.shadowRoot.querySelector('canvas');
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let [dark, light, coloured] = [0, 0, 0];
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] < 200) continue;
    const [r, g, b] = pixels.slice(i, i + 3);
    dark += r + g + b < 150;
    light += Math.min(r, g, b) > 200;
    coloured += g > r + 30;
  }
  return { width: canvas.width, dark, light, coloured, label: canvas.ariaLabel, table: map.querySelector('table').getClientRects().length };
};
const drawn = async () => {
  const maps = [...document.querySelectorAll('attention-map')];
  while (maps.some((map) => !map.shadowRoot?.querySelector('canvas').ariaLabel)) await new Promise((done) => setTimeout(done, 20));
  return maps.map(look);
};
const tell = (seen) => fetch('/seen', { method: 'POST', body: JSON.stringify(seen) });
"""
