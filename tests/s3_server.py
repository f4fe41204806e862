"""A real S3 server on loopback (moto's), which counts requests and can be told to act on them."""

import contextlib
import hashlib
import threading
import urllib.request
import warnings
from pathlib import Path
from typing import NamedTuple

SECRET = "a-secret-that-is-written-nowhere"


class Request(NamedTuple):
    method: str
    path: str  # /bucket/key
    query: str
    range: str | None


class S3Server:
    """Serves until it is stopped; `before` is called with every request before it is answered."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import boto3
            from moto.moto_server.werkzeug_app import (
                DomainDispatcherApplication,
                create_backend_app,
            )
            from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *_):
                pass

        self.app = DomainDispatcherApplication(create_backend_app)
        self.requests, self.before = [], lambda _: None
        self.server = make_server("127.0.0.1", 0, self._answer, True, request_handler=Quiet)
        self.server.daemon_threads = True
        self.url = "http://{}:{}".format(*self.server.server_address[:2])
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.key = {"aws_access_key_id": "someone", "aws_secret_access_key": SECRET}
        self._client = boto3.client
        self.client = self.connect("s3")

    def connect(self, service):
        return self._client(service, endpoint_url=self.url, region_name="us-east-1", **self.key)

    def _answer(self, environ, start_response):
        found = Request(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"],
            environ.get("HTTP_RANGE"),
        )  # fmt: skip
        self.requests.append(found)
        self.before(found)
        return self.app(environ, start_response)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def upload(self, folder: Path, bucket: str, prefix: str) -> str:
        """Upload the files of a folder, and return their address."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(folder).as_posix()}"
                self.client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
        return f"s3://{bucket}/{prefix}"

    def objects(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """Return all objects by their keys, without the marks of folders."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return {
            key: self.client.get_object(Bucket=bucket, Key=key)["Body"].read()
            for key in keys
            if not key.endswith("/")
        }

    def restore(self, bucket: str, objects: dict[str, bytes]) -> None:
        """Make a bucket hold these objects; those that are the same are left as they are."""
        found = self.client.list_objects_v2(Bucket=bucket).get("Contents", ())
        now = {entry["Key"]: entry["ETag"].strip('"') for entry in found}
        gone = [{"Key": key} for key in now if key not in objects]
        if gone:
            self.client.delete_objects(Bucket=bucket, Delete={"Objects": gone})
        for key, data in objects.items():
            if now.get(key) != hashlib.md5(data).hexdigest():
                self.client.put_object(Bucket=bucket, Key=key, Body=data)

    def fetched(self, ending: str) -> list[int]:
        """Return how many bytes were asked for by each request for objects of an ending."""
        spans = [r.range for r in self.requests if r.method == "GET" and r.path.endswith(ending)]
        ends = [span.removeprefix("bytes=").split("-") for span in spans]
        return [int(last) - int(first) + 1 for first, last in ends]

    @contextlib.contextmanager
    def as_nobody(self, monkeypatch):
        """Let the key of a user without any permission count, checked by the server's IAM."""
        iam = self.connect("iam")
        iam.create_user(UserName="nobody")
        made = iam.create_access_key(UserName="nobody")["AccessKey"]
        with monkeypatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", made["AccessKeyId"])
            patch.setenv("AWS_SECRET_ACCESS_KEY", made["SecretAccessKey"])
            self._check_from(0)
            try:
                yield
            finally:
                self._check_from(10**9)
        iam.delete_access_key(UserName="nobody", AccessKeyId=made["AccessKeyId"])
        iam.delete_user(UserName="nobody")

    def _check_from(self, number: int):
        """Check permissions from so many requests on."""
        request = urllib.request.Request(
            f"{self.url}/moto-api/reset-auth", data=str(number).encode(), method="POST",
            headers={"content-type": "text/plain"},
        )  # fmt: skip
        urllib.request.urlopen(request).close()
