"""The page of a load test in a real browser: what it asks for, what it complains about, what can be seen."""

import contextlib
import json
import os
import select
import subprocess
import time

import load_results
import pytest

from tritongen.load.compare import compare, read_earlier
from tritongen.report.load_html import load_page

pytestmark = pytest.mark.system

WAIT_S = 60
SEEN = """
[...document.querySelectorAll('h1, h2, h3, figure, .drawn, table, #verdict, .legend li')].map(element => {
  const box = element.getBoundingClientRect();
  return [element.tagName + '#' + element.id + ' ' + element.textContent.trim().slice(0, 30), box.width, box.height, box.left, box.right];
})
"""
LETTERS = """
[...document.querySelectorAll('.drawn svg text')].map(
  element => [element.textContent, parseFloat(getComputedStyle(element).fontSize) * element.getScreenCTM().d]
)
"""
SMALLEST_PX = 10
"""Letters that are lower are hard to read on a screen."""
COLOURS = """
(() => { const style = getComputedStyle(document.body), path = getComputedStyle(document.querySelector('path.s0'));
         return [style.backgroundColor, style.color, path.stroke]; })()
"""


class Browser:
    """A headless Chromium, spoken to in its DevTools protocol over two pipes: messages are JSON that ends in a NUL."""

    def __init__(self, profile):
        (to_read, self._writing), (self._reading, to_write) = os.pipe(), os.pipe()
        script = f'exec chromium --headless --no-sandbox --disable-gpu --user-data-dir="$0" --remote-debugging-pipe 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, str(profile)], pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """What the browser answers; what it tells meanwhile is in `events`."""
        self._number += 1
        session = {"sessionId": self._session} if hasattr(self, "_session") else {}
        os.write(self._writing, json.dumps({"id": self._number, "method": method, "params": parameters, **session}).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def _next(self):
        end = time.monotonic() + WAIT_S
        while b"\0" not in self._rest:
            assert select.select([self._reading], [], [], max(end - time.monotonic(), 0))[0], "the browser does not answer"
            more = os.read(self._reading, 1 << 20)
            assert more, "the browser ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, path):
        """Show a file, and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression):
        """What an expression is in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._reading)
        os.close(self._writing)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def page(tmp_path):
    """A page with everything on it that there can be."""
    earlier = tmp_path / "earlier.json"
    earlier.write_text(load_results.make("50:2s,100:2s", seed=2).to_json())
    result = load_results.make("50:2s,100:2s", model=load_results.HOSTILE, message=load_results.HOSTILE)
    path = tmp_path / "report.html"
    path.write_text(load_page(result, compare(read_earlier(earlier), earlier, result)))
    return path


def test_it_asks_for_nothing_and_complains_of_nothing(browser, page):
    browser.open(page)
    asked = [event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
    assert [event for event in browser.events if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")] == []


@pytest.mark.parametrize("width", [1300, 700, 360])
def test_everything_can_be_seen_at_any_width(browser, page, width):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.open(page)
    seen = browser.value(SEEN)
    assert len([name for name, *_ in seen if name.startswith("FIGURE")]) == 6
    assert [name for name, wide, high, *_ in seen if wide < 10 or high < 10] == []
    assert [name for name, _, _, left, right in seen if not name.startswith("TABLE") and (left < 0 or right > width)] == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    letters = browser.value(LETTERS)
    assert len(letters) > 50
    # Those of an upright title are turned, and have their height in another place.
    assert [(text, high) for text, high in letters if abs(high) > 0.1 and high < SMALLEST_PX] == []


def test_it_is_dark_where_the_reader_wants_it_and_light_on_paper(browser, page):
    def looks(**media):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}], **media)
        return browser.value(COLOURS)

    browser.open(page)
    dark, paper = looks(media="screen"), looks(media="print")
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    light = browser.value(COLOURS)
    assert light[0] == paper[0] == "rgb(255, 255, 255)"
    for background, *drawn in (dark, light, paper):
        assert all(contrast(background, colour) >= 4.5 for colour in drawn), (background, drawn)
    assert dark[0] != light[0]


def contrast(one, other):
    """The ratio of luminances that WCAG 2 defines; text needs 4.5."""

    def luminance(text):
        parts = [int(part) / 255 for part in text.removeprefix("rgb(").rstrip(")").split(",")]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_it_prints(browser, page):
    browser.open(page)
    assert len(browser.call("Page.printToPDF")["data"]) > 20_000
