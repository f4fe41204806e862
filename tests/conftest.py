"""What many tests share."""

import pytest

from two_senses import make_two_senses


@pytest.fixture(scope="session")
def two_senses():
    return make_two_senses()


@pytest.fixture(scope="session")
def corrected(two_senses):
    return two_senses.correct(class_names=["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory):
    """A cache of converted models that all tests share and nobody else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
