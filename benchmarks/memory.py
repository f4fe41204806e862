"""How much memory a process holds."""

import threading
import time
from pathlib import Path


class Memory:
    """Watches how much memory this process holds at most, in GB, with and without mapped files."""

    def __init__(self) -> None:
        self.held = self.with_files = 0.0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Look a few times a second."""
        while True:
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            found = {line.split(":")[0]: line.split()[1] for line in lines if "kB" in line}
            self.held = max(self.held, float(found["RssAnon"]) / 1e6)
            self.with_files = max(self.with_files, float(found["VmRSS"]) / 1e6)
            time.sleep(0.05)
