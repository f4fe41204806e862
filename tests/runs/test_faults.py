"""A sample of the faults that ``make faults`` tests in full."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fault_points.py")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux"),
]


@pytest.mark.parametrize(
    ("group", "sample"), [("correct", 5), ("export", 2), ("answers", 4), ("train", 3)]
)
def test_after_a_fault_the_old_or_the_new_result_is_read_and_running_again_mends_it(group, sample):
    if group == "train":
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        [sys.executable, SCRIPT, group, "--sample", str(sample)], env=os.environ | threads,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "; 0 wrong;" in done.stdout
