"""Starting a review: what is wrong is said in one line."""

import pathlib
import socket
import stat
import sys

import pytest
from click.testing import CliRunner

from vsgraph.cli import main
from vsgraph.common.files import lock

pytest.importorskip("uvicorn", reason="the extra review is not installed")


def review(folder, *options):
    done = CliRunner().invoke(main, ["review", str(folder), *options])
    return done.exit_code, done.output


def test_a_port_in_use_is_one_line(run_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = review(run_folder, "--port", str(port))
    assert code == 1
    assert output == (
        f"Error: cannot listen at 127.0.0.1, port {port}: Address already in use; choose another "
        "one (--port, --host)\n"
    )


def test_an_address_that_is_not_ours_is_one_line(run_folder):
    code, output = review(run_folder, "--host", "192.0.2.1", "--port", "0")
    assert code == 1
    assert output.startswith("Error: cannot listen at 192.0.2.1")
    assert output.count("\n") == 1


def test_a_run_that_is_being_corrected_is_one_line(run_folder):
    with lock(run_folder / ".lock"):
        code, output = review(run_folder, "--port", "0")
    assert code == 1
    assert "is being corrected by another process; start the review when it" in output
    assert output.count("\n") == 1


def test_what_is_no_run_or_no_name_is_one_line(run_folder, tmp_path):
    (tmp_path / "other").mkdir()
    code, output = review(tmp_path / "other")
    assert code == 1
    assert "is not a run of vsgraph" in output
    code, output = review(run_folder, "--reviewer", "../..", "--port", "0")
    assert code == 1
    assert "is no name of a reviewer" in output


def test_without_the_extra_its_name_is_said(run_folder, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("vsgraph.review")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, output = review(run_folder)
    assert code == 1
    assert "the review needs the extra 'review': pip install 'vsgraph[review]'" in output


def test_the_token_stays_and_is_private(monkeypatch, tmp_path):
    from vsgraph.review.server import own_token

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    token = own_token()
    path = tmp_path / "vsgraph" / "review-token"
    assert own_token() == token == path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)  # others may have read it
    assert own_token() != token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    pathlib.Path(path).mkdir()  # it cannot be kept
    assert len(own_token()) >= 32
    assert own_token() != own_token()
