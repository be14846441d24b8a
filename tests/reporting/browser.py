"""A headless Chromium that is told what to do through two pipes: no port, no further package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 60.0
_CODES = {
    "ArrowDown": 40,
    "ArrowLeft": 37,
    "ArrowRight": 39,
    "ArrowUp": 38,
    "End": 35,
    "Enter": 13,
    "Home": 36,
    "Tab": 9,
}


def find_chromium() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """Chromium with one page at a time.

    Attributes:
        problems: uncaught errors, and errors and warnings of the console or of the security policy.
        requests: addresses that were asked for.
    """

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # Chromium reads from 3 and writes to 4; these may be taken by other ends of the pipes here.
        theirs_in, theirs_out = (_above(end, 10) for end in (theirs_in, theirs_out))
        self._out, self._in = _above(ours_out, 10), _above(ours_in, 10)
        nothing = os.open(os.devnull, os.O_RDWR)
        self._process = os.posix_spawn(
            program,
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._folder.name}",
                "about:blank",
            ],
            {**os.environ, "HOME": self._folder.name},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                (os.POSIX_SPAWN_DUP2, theirs_out, 4),
                (os.POSIX_SPAWN_DUP2, nothing, 1),
                (os.POSIX_SPAWN_DUP2, nothing, 2),
            ],
            setsid=True,
        )
        for end in (theirs_in, theirs_out, nothing):
            os.close(end)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command and wait for its answer; events on the way are noted."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], _SECONDS)[0]:
                raise TimeoutError("Chromium does not answer.")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended.")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, details: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.problems.append(thrown.get("exception", {}).get("description") or thrown["text"])
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(part.get("value")) for part in details["args"]))
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(details["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif event == "Page.loadEventFired":
            self.loaded = True

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file and wait until the page says that it stands."""
        self.problems, self.requests, self.loaded = [], [], False
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not self.loaded:
            self._receive()
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description"))
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}; problems: {self.problems}")
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until the charts are drawn."""
        self.wait("Object.keys(document.documentElement.dataset).every(key => key !== 'drawing')")

    def press(self, key: str) -> None:
        """Press a key on the element that has the focus."""
        common: dict[str, Any] = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": _CODES.get(key, 0),
        }
        if key == "Enter":
            common["text"] = "\r"
        self.send("Input.dispatchKeyEvent", type="keyDown", **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def picture_of(self, selector: str) -> str:
        """What an element looks like, as PNG in base64."""
        box = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x + scrollX, box.y + scrollY, box.width, box.height]; })()"
        )
        clip = dict(zip(("x", "y", "width", "height"), box, strict=True), scale=1)
        shot = self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return shot["data"]

    def close(self) -> None:
        try:
            os.killpg(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        for end in (self._in, self._out):
            os.close(end)
        self._folder.cleanup()


def _above(end: int, least: int) -> int:
    """The same end of a pipe with a larger number, not given on to other programs."""
    larger = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(end)
    return larger
