"""Progress on a terminal and in a pipe."""

import pytest

from vsgraph.common import progress
from vsgraph.common.progress import Lines, bar


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_pipe_gets_a_line_every_ten_seconds(clock, capsys):
    with bar(1000, "pictures", progress=True) as steps:
        assert isinstance(steps, Lines)
        steps.update(200)  # known from before
        steps.unpause()
        for second in range(1, 32):
            clock[0] = float(second)
            steps.update(10)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "pictures: 300 of 1,000 (30%), about 70 s left",
        "pictures: 400 of 1,000 (40%), about 60 s left",
        "pictures: 500 of 1,000 (50%), about 50 s left",
    ]


def test_what_has_no_end_counts_its_steps(clock, capsys):
    with bar(title="network", progress=True) as steps:
        clock[0] = 11.0
        steps.update()
        steps.set_postfix({"loss": 1}, refresh=False)
    assert capsys.readouterr().err == "network: 1 steps, 11 s\n"


def test_nothing_is_told_unless_asked(clock, capsys):
    with bar(5, "pictures") as steps:
        clock[0] = 60.0
        steps.update()
    assert capsys.readouterr().err == ""
