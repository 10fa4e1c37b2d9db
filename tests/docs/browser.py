"""Headless Chromium, driven by the DevTools protocol over two pipes: no driver, no client library."""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from release.screenshot import find_browser

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]


START = """
import os, sys
read, write = (os.dup(int(number)) for number in sys.argv[1:3])  # copies, since 3 and 4 may be among them
os.dup2(read, 103)
os.dup2(write, 104)
os.dup2(103, 3)  # the protocol reads from 3 and writes to 4
os.dup2(104, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page; `messages` are what its console said, `requests` the addresses it asked for."""

    def __init__(self) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [find_browser(), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        start = [sys.executable, "-c", START, str(theirs_in), str(theirs_out), *command]
        self._process = subprocess.Popen(start, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._reader, self._writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self._n, self._session, self._rest = 0, None, b""
        self._events: list[dict] = []
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.close()
        self._writer.close()
        self._profile.cleanup()

    def open(self, address: str, *, width: int = 1280, dark: bool = False) -> None:
        """Loads a page; a phone's screen is 390 wide."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **screen)
        self._events.clear()
        self._call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._receive())

    def evaluate(self, script: str):
        """Returns the value of an expression in the page; promises are waited for."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = 120.0):
        """Evaluates until the value is true; returns it."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            with suppress(AssertionError):  # a page that is being left does not answer
                if value := self.evaluate(f"new Promise((done) => setTimeout(() => done({script}), 50))"):
                    return value
        raise AssertionError(f"{script} did not become true in {seconds} s")

    def drag(self, points, *, touch: bool = False) -> None:
        """Draws through points of the page, (x, y) each, with the mouse or a finger."""
        kinds = ("touchStart", "touchMove", "touchEnd") if touch else ("mousePressed", "mouseMoved", "mouseReleased")
        steps = [(kinds[0], points[0]), *((kinds[1], point) for point in points[1:]), (kinds[2], points[-1])]
        for kind, (x, y) in steps:
            if touch:
                fingers = [] if kind == "touchEnd" else [{"x": float(x), "y": float(y)}]
                self._call("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)
            else:
                place = {"x": float(x), "y": float(y), "button": "left", "buttons": 1, "clickCount": 1}
                self._call("Input.dispatchMouseEvent", type=kind, **place)

    def press(self, *keys: str) -> None:
        """Presses keys one after the other; letters and digits are typed."""
        codes = {"Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            given = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())), "text": text}
            self._call("Input.dispatchKeyEvent", type="keyDown", **given)
            self._call("Input.dispatchKeyEvent", type="keyUp", **given)

    def picture(self, path: Path) -> None:
        """Writes a PNG of the page as it is."""
        import base64

        Path(path).write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **parameters):
        self._n += 1
        message = {"id": self._n, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        self._writer.flush()
        while (answer := self._receive()).get("id") != self._n:
            self._events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self) -> dict:
        while b"\0" not in self._rest:
            part = self._reader.read1(1 << 16)
            assert part, "Chromium has ended"
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(first)
        self._note(message.get("method"), message.get("params", {}))
        return {"method": None, **message}

    def _note(self, method: str | None, given: dict) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.messages.append(str(given["args"]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(str(given["exceptionDetails"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.messages.append(str(given["entry"]))
