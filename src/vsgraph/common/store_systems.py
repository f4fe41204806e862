"""Arrow's file systems of object stores, and what their errors mean.

Keys, region and endpoint come from the environment variables that other programs use.
"""

import functools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from vsgraph.errors import StoreError

ATTEMPTS = 4
CONNECT_SECONDS, REQUEST_SECONDS = 10, 20  # without a byte
DENIED = re.compile("ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|PERMISSION_DENIED|UNAUTHENTICATED"
                    "|TOKEN|FORBIDDEN|HTTP status 403|CREDENTIALS")  # fmt: skip
GONE = re.compile("NETWORK_CONNECTION|UNAVAILABLE|DEADLINE|curlCode|TIMEOUT|timed out")
NO_BUCKET = re.compile("NO_SUCH_BUCKET|bucket does not exist", re.IGNORECASE)
MISSING = re.compile("NO_SUCH_KEY|NOT_FOUND|does not exist")


def file_system(path: Path) -> Any:  # noqa: ANN401
    """Return Arrow's file system of an address, set up from the environment."""
    env = os.environ.get
    if path.parts[0] == "gs:":
        return _google(env("STORAGE_EMULATOR_HOST"), env("GS_NO_SIGN_REQUEST", ""))
    endpoint = env("AWS_ENDPOINT_URL_S3") or env("AWS_ENDPOINT_URL")
    region = env("AWS_REGION") or env("AWS_DEFAULT_REGION")
    bucket = path.parts[1] if not (region or endpoint) else ""
    key = env("AWS_ACCESS_KEY_ID", ""), env("AWS_SECRET_ACCESS_KEY", "")
    return _amazon(endpoint, region, bucket, env("AWS_NO_SIGN_REQUEST", ""), key)


@functools.lru_cache(maxsize=16)
def _amazon(
    endpoint: str | None, region: str | None, bucket: str, unsigned: str, _key: tuple[str, str]
) -> Any:  # noqa: ANN401
    """Return the file system of S3, or of a server that speaks as it does."""
    from pyarrow import fs

    where = _split(endpoint, "https")
    options: dict[str, Any] = {
        "region": region or (fs.resolve_s3_region(bucket) if bucket else "us-east-1"),
        "anonymous": _is_yes(unsigned),
        "scheme": where.scheme or None,
        "endpoint_override": where.netloc + where.path.rstrip("/") or None,
        "connect_timeout": CONNECT_SECONDS,
        "request_timeout": REQUEST_SECONDS,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    }
    try:  # small objects by one request instead of three
        return fs.S3FileSystem(**options, allow_delayed_open=True)
    except TypeError:  # before pyarrow 21
        return fs.S3FileSystem(**options)


@functools.lru_cache(maxsize=16)
def _google(endpoint: str | None, unsigned: str) -> Any:  # noqa: ANN401
    """Return the file system of Google Cloud Storage, or of an emulator."""
    from pyarrow import fs

    where = _split(endpoint, "http")
    return fs.GcsFileSystem(
        anonymous=_is_yes(unsigned) or bool(endpoint),
        scheme=where.scheme or None,
        endpoint_override=where.netloc or None,
        retry_time_limit=timedelta(seconds=REQUEST_SECONDS),
    )


def _split(endpoint: str | None, scheme: str) -> SplitResult:
    """Return the parts of an endpoint, which may lack its scheme; all empty if there is none."""
    if not endpoint:
        return urlsplit("")
    return urlsplit(endpoint if "://" in endpoint else f"{scheme}://{endpoint}")


def _is_yes(value: str) -> bool:
    return value.lower() in {"yes", "true", "1"}


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise what a store refuses as one line; a missing object stays FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        text = str(error)
        if DENIED.search(text):
            why = "the store denies access; check the key, its permissions and the bucket's name"
        elif GONE.search(text):
            why = f"the store does not answer; tried {ATTEMPTS} times; check the network and "
            why += "AWS_ENDPOINT_URL, then start again"
        elif NO_BUCKET.search(text):
            why = "there is no such bucket"
        elif MISSING.search(text):
            raise FileNotFoundError(2, "No such object", str(path)) from error
        else:
            why = f"the store refuses: {' '.join(text.split())[:300]}"
        raise StoreError(f"{path}: {why}") from error
