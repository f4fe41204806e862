# ruff: noqa: E501, T201
"""Run commands of vsgraph in this process, watched: programs, network, writes, hangs, tracebacks.

Used as ``python audited.py OUT``, with a list of commands as JSON on the standard input. Writes
below OUT are allowed. Prints one line of JSON for each command.
"""

import contextlib
import io
import json
import os
import signal
import sys
import time
from pathlib import Path

STARTS = {
    "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
    "pty.spawn", "os.startfile", "webbrowser.open", "socket.connect", "socket.getaddrinfo",
}  # fmt: skip
WRITES = {
    "os.rename": (0, 1), "os.remove": (0,), "os.mkdir": (0,), "os.rmdir": (0,), "os.symlink": (1,),
    "os.link": (1,), "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,),
    "shutil.rmtree": (0,), "shutil.move": (0, 1), "shutil.copyfile": (1,), "sqlite3.connect": (0,),
}  # fmt: skip
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HARMLESS = ("/dev/null", "/dev/tty", "/proc/self/", "/sys/")
SECONDS = 180


class Hang(BaseException):
    """A command that takes too long; no `except OSError` swallows it."""


class Watch:
    """An audit hook that notes what should not happen."""

    def __init__(self, allowed):
        self.allowed = os.path.realpath(allowed)
        self.seen = []
        sys.addaudithook(self.note)

    def note(self, event, arguments):
        if event in STARTS:
            self.seen.append(f"{event} {arguments!r}"[:300])
        elif event == "open" and (arguments[2] or 0) & TO_WRITE:
            self.check(event, arguments[0])
        elif event in WRITES:
            for place in WRITES[event]:
                self.check(event, arguments[place])

    def check(self, event, path):
        if isinstance(path, int) or path is None:
            return
        real = os.path.realpath(os.fsdecode(path))
        if not real.startswith((self.allowed + os.sep, *HARMLESS)) and real != self.allowed:
            self.seen.append(f"{event} {real}")


def stop(*_):
    raise Hang


def run(main, arguments):
    """Run a command; return its exit code and what it wrote to the standard error and output."""
    said, wrote = io.StringIO(), io.StringIO()
    signal.alarm(SECONDS)
    started = time.monotonic()
    code = 0
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(wrote):
            main.main(arguments, prog_name="vsgraph")
    except SystemExit as ended:
        code = ended.code or 0
    except Hang:
        code = "hang"
    except BaseException:  # noqa: BLE001
        import traceback

        code = "traceback"
        said.write(traceback.format_exc())
    finally:
        signal.alarm(0)
    return {"code": code, "error": said.getvalue()[-3000:], "output": wrote.getvalue()[:20_000],
            "seconds": round(time.monotonic() - started, 2)}  # fmt: skip


def main():
    signal.signal(signal.SIGALRM, stop)
    commands = json.load(sys.stdin)
    from vsgraph.cli import main as vsgraph

    watch = Watch(Path(sys.argv[1]))
    for command in commands:
        result = run(vsgraph, command)
        print(json.dumps({"command": command, **result, "seen": watch.seen}), flush=True)
        watch.seen = []


if __name__ == "__main__":
    main()
