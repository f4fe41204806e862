"""The correction and the crawl that exports are made from."""

import pytest
from exports_data import make_correction, make_crawl


@pytest.fixture(scope="module")
def made():
    return make_correction()


@pytest.fixture(scope="module")
def multi():
    return make_correction(several=True)


@pytest.fixture
def crawl(tmp_path):
    return make_crawl(tmp_path / "crawl")


@pytest.fixture
def multi_crawl(tmp_path):
    return make_crawl(tmp_path / "crawl", several=True)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "new" / "out"
