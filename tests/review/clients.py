"""A browser's side of the review's server, without a network."""

import pytest

TOKEN = "a-token-for-tests-0123456789abcdef"
HOST = "127.0.0.1:8350"


def open_client(run_folder, reviewer):
    """Return a client that has the cookie, and sends the origin as our own pages do."""
    testclient = pytest.importorskip("starlette.testclient", reason="the extra review is missing")
    from vsgraph.review.app import make_app
    from vsgraph.review.pages import Review
    from vsgraph.review.session import Session

    review = Review(Session(run_folder, reviewer))
    app = make_app(review, token=TOKEN, host="127.0.0.1", port=8350)
    client = testclient.TestClient(
        app, base_url=f"http://{HOST}", headers={"origin": f"http://{HOST}"}
    )
    client.cookies.set("vsgraph-8350", TOKEN)
    client.review = review
    return client
