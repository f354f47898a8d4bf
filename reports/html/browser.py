# A headless Chromium, driven through the DevTools protocol over a pipe with nothing but the standard library.
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find():
    found = [os.environ.get("DELTAGAUGE_CHROMIUM")] + [shutil.which(name) for name in NAMES]
    return next((path for path in found if path), None)


class Browser:
    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_read, self.command = self.pipe()
        self.answers, answer_write = self.pipe()
        arguments = ["--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--hide-scrollbars", f"--user-data-dir={self.profile.name}"]
        if os.getuid() == 0:
            arguments.append("--no-sandbox")  # Chromium's sandbox refuses to run as root

        # Chromium reads commands from file 3 and answers on file 4; shell redirection puts them there.
        shell = f"exec \"$@\" 3<&{command_read} 4>&{answer_write} {command_read}<&- {answer_write}>&-"
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", program, *arguments, "about:blank"],
                                        pass_fds=(command_read, answer_write), stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(answer_write)
        self.buffer, self.last, self.events = b"", 0, []

    @staticmethod
    def pipe():
        """A pipe whose ends lie out of the way of files 3 and 4."""
        low = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
        for end in low:
            os.close(end)
        return high

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def message(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.answers, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("Chromium closed its pipe" if ready else "Chromium did not answer in time")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, timeout=60, **params):
        self.last += 1
        request = {"id": self.last, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.command, data):]
        deadline = time.monotonic() + timeout
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, **options):
        return Tab(self, path, **options)


class Tab:
    """One page. problems() lists console errors, exceptions and violations of its security policy."""

    def __init__(self, browser, path, width=1280, height=900, scheme="light", script=True):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        started = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not self.events("Page.loadEventFired"):
            browser.events.append(browser.message(started + 60))
        self.load_seconds = time.monotonic() - started

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def events(self, method):
        return [e["params"] for e in self.browser.events if e.get("sessionId") == self.session and e.get("method") == method]

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Waits for two frames, so that what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def press(self, key, code):
        text = {"Enter": {"text": "\r"}}.get(key, {})
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)
        self.settle()

    def problems(self):
        self.call("Runtime.evaluate", expression="0")
        found = [str(e["exceptionDetails"]) for e in self.events("Runtime.exceptionThrown")]
        found += [str(e["args"]) for e in self.events("Runtime.consoleAPICalled") if e["type"] in ("error", "assert")]
        found += [e["entry"]["text"] for e in self.events("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
        return found

    def requests(self):
        return [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": self.whole()} if whole else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))

    def whole(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
