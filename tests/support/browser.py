"""A headless Chromium for tests, driven by the DevTools protocol over its pipe: no driver and no package is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from tests.support.tools import HANG_S, missing

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_COMMAND: Final = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def require_chromium() -> str:
    """The path of Chromium; without it the test is skipped, or fails where `CI` is set."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None) or missing("Chromium (chromium)")


@dataclass(eq=False)
class Page:
    """A page of the browser.

    Attributes:
        messages: What scripts and the browser have written to the console, and exceptions.
    """

    commands: BinaryIO
    replies: BinaryIO
    session: str = ""
    messages: list[str] = field(default_factory=list[str])
    events: list[str] = field(default_factory=list[str])
    _number: int = 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        self.commands.flush()
        while True:
            reply = self._receive()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply["error"]
                return cast("dict[str, Any]", reply["result"])

    def _receive(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self.replies.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        reply = cast("dict[str, Any]", json.loads(data))
        method = reply.get("method", "")
        self.events.append(method)
        if method in (
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        ):
            self.messages.append(json.dumps(reply["params"]))
        return reply

    def open(self, path: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Load a file, in a window of a size."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        self.wait("Page.loadEventFired")

    def wait(self, event: str) -> None:
        """Wait for an event of the protocol that `events` does not have yet."""
        while event not in self.events:
            self._receive()

    def value(self, expression: str) -> Any:
        """The value of an expression in JavaScript."""
        reply = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def move(self, selector: str) -> tuple[float, float]:
        """Scroll to an element and move the mouse to it."""
        place = self.value(
            f"""(() => {{
                const element = document.querySelector({json.dumps(selector)});
                element.scrollIntoView({{block: "center"}});
                const place = element.getBoundingClientRect();
                return [place.x + 40, place.y + 5];
            }})()"""
        )
        x, y = cast("list[float]", place)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector: str) -> None:
        """Click on an element."""
        x, y = self.move(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key, by its name in the DOM."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind, typed in (("keyDown", text), ("keyUp", {})):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **typed)

    def screenshot(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(folder: Path) -> Generator[Page]:
    """A browser with one page; its profile is below a folder."""
    to_browser, commands = os.pipe()
    replies, from_browser = os.pipe()
    script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@" 2>/dev/null'
    arguments = [require_chromium(), *_COMMAND, f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe"]
    command = ["bash", "-c", script, "bash", str(to_browser), str(from_browser), *arguments, "about:blank"]
    process = subprocess.Popen(command, pass_fds=(to_browser, from_browser), env=os.environ | {"HOME": str(folder)})
    os.close(to_browser)
    os.close(from_browser)
    with os.fdopen(commands, "wb") as writer, os.fdopen(replies, "rb", buffering=0) as reader:
        page = Page(writer, reader)
        try:
            target = page.send("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                page.send(f"{domain}.enable")
            yield page
        finally:
            page.session = ""
            page.send("Browser.close")
            process.wait(HANG_S)
