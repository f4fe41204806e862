"""What changed between two results, with one label per image and with several."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from vsgraph.crawls.crawl import Crawl
from vsgraph.judge.since import Since, Version, changed_since
from vsgraph.result.parts import Decisions

NAMES = ("bat", "owl")


def version(images, labels, final, texts=None, keys=None, names=NAMES):
    several = isinstance(labels[0], list)
    kind = pa.list_(pa.int32()) if several else pa.int32()
    table = pa.table({"image": images, "web_labels": pa.array(labels, kind),
                      "title": texts or ["a text"] * len(images)})  # fmt: skip
    crawl = Crawl("a table", Path(), table, names, text_fields=("title",))
    given = np.array(final)
    rejected = ~given.any(axis=1) if several else given < 0
    decisions = np.where(rejected, 2, 0).astype(np.uint8)
    return Version(crawl, Decisions(given, decisions, decisions), keys)


def rows_of(since, change):
    return {row["image"]: row for row in since.of(change).to_pylist()}


def test_images_are_new_gone_edited_or_decided_otherwise(tmp_path):
    keys = np.zeros((4, 16), np.uint8)
    other = keys.copy()
    other[0] = 1  # another picture under the same name
    before = version(["a", "b", "c", "d"], [0, 0, 1, 1], [0, 0, 1, -1], keys=keys)
    now = version(
        ["e", "d", "c", "b"], [0, 1, 0, 0], [0, 1, 0, 0],
        texts=["x", "a text", "a text", "another text"], keys=keys,
    )  # fmt: skip

    since = changed_since(before, now)

    assert since.counts == {"new": 1, "gone": 1, "edited": 2, "changed": 1}
    assert rows_of(since, "new")["e"]["decision_before"] is None
    assert rows_of(since, "gone")["a"] | {"row": 0} == {
        "row": 0, "image": "a", "change": "gone", "web_label": "bat", "label_before": "bat",
        "decision_before": "keep", "label": None, "decision": None,
    }  # fmt: skip
    assert set(rows_of(since, "edited")) == {"b", "c"}
    changed = rows_of(since, "changed")["d"]
    assert (changed["row"], changed["label_before"], changed["label"]) == (1, None, "owl")
    assert "1 others decided otherwise (1 kept)" in str(since)
    since.save(tmp_path)
    assert Since.load(tmp_path).table.equals(since.table)
    assert '"e","new","bat"' in (tmp_path / "since.csv").read_text()
    replaced = changed_since(before, before._replace(keys=other))
    assert set(rows_of(replaced, "edited")) == {"a"}


def test_several_labels_and_other_classes_are_compared_by_name():
    before = version(["a", "b"], [[0], [0, 1]], [[True, False], [True, True]])
    now = version(
        ["a", "b", "c"], [[1], [1, 2], [0]],
        [[False, True, False], [False, True, False], [False, False, False]],
        names=("auk", "bat", "owl"),
    )  # fmt: skip

    since = changed_since(before, now)

    assert since.counts == {"new": 1, "gone": 0, "edited": 0, "changed": 1}
    changed = rows_of(since, "changed")["b"]
    assert (changed["label_before"], changed["label"]) == ("bat|owl", "bat")
    assert rows_of(since, "new")["c"]["label"] is None
