"""What many tests share."""

import pytest

from s3_server import SECRET, S3Server
from two_senses import make_two_senses

collect_ignore_glob = ["*conftest.py"]  # they hold fixtures, no examples


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


@pytest.fixture(scope="session")
def s3_server():
    """A real S3 server on loopback."""
    pytest.importorskip("moto", reason="moto, which serves S3, is not installed")
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server, tmp_path, monkeypatch):
    """That server with an empty bucket, ``crawls``, and a cache of our own."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server.url, "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": SECRET,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    s3_server.client.create_bucket(Bucket="crawls")
    s3_server.requests.clear()
    yield s3_server
    s3_server.before = lambda _: None
    s3_server.restore("crawls", {})
