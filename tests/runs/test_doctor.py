"""What is installed, and what to type for the rest."""

import tomllib
from importlib import metadata
from pathlib import Path

from click.testing import CliRunner

from vsgraph.cli import main
from vsgraph.runs import doctor

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_doctor_says_what_is_there_and_what_to_type(monkeypatch):
    version = metadata.version

    def without_pandas(name):
        if name == "pandas":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_pandas)
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "table (pandas tables): pandas missing; pip install 'vsgraph[table]'" in done.output
    assert f"numba {version('numba')}" in done.output
    assert "WordNet 3.0: /" in done.output
    assert "GPU: " in done.output


def test_without_an_installed_record_every_extra_is_named(monkeypatch):
    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", unknown)
    lines = doctor.examine()
    assert "scale (search among many images): pip install 'vsgraph[scale]'" in lines


def test_every_extra_has_a_purpose_and_is_in_all():
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert set(extras) == set(doctor.PURPOSE)
    assert set(everything.removeprefix("vsgraph[").removesuffix("]").split(",")) == set(extras)
