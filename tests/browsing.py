"""A real browser for tests: Debian's chromium."""

import contextlib
import os
import shutil

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium is installed (apt install chromium)"
)


@contextlib.contextmanager
def launched():
    """Give a browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


def is_wider_than_the_screen(page):
    return page.evaluate("document.documentElement.scrollWidth > innerWidth")


def wait_until(page, holds, argument=None):
    """Ask again and again from outside: the page's own policy forbids to evaluate strings in it."""
    for _ in range(200):
        if page.evaluate(holds, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(holds)
