"""A crawl and a run in an object store, corrected by a cluster."""

import shutil
import warnings

import pytest
from three_nodes import COCO_WEB, NODE, files_of

from vsgraph.runs import run

pytestmark = [pytest.mark.slow, pytest.mark.data]
OPTIONS = {"text_encoder": "lsa", "with_report": False, "anchors_per_class": 3}


@pytest.fixture
def stored_photos(photos, s3):
    """The sample of COCO-Web and its pictures as objects."""
    folder = photos.parent
    for name in photos.read_text().split('"'):
        if name.startswith("images/"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(COCO_WEB / name, folder / name)
    return s3.upload(folder, "crawls", "photos")


@pytest.fixture
def two_machines(s3):
    """Two machines with one processor each, which have the keys of the store."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("ray", reason="needs vsgraph[cluster]")
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        made.add_node(**NODE)
        yield made.address
        made.shutdown()


def test_a_stored_crawl_is_corrected_into_a_stored_run(
    photos, stored_photos, two_machines, s3, tmp_path
):
    here = run(photos, tmp_path / "run", images=COCO_WEB, **OPTIONS)
    s3.requests.clear()
    lines = []
    there = run(
        f"{stored_photos}/metadata.jsonl", "s3://crawls/run", cluster=two_machines,
        tell=lines.append, **OPTIONS,
    )  # fmt: skip
    assert lines[0] == "cluster: 2 machines, 2 processors"
    assert files_of(there) == files_of(here)
    fetched = {request.path for request in s3.requests if request.path.endswith(".jpg")}
    assert len(fetched) == len(photos.read_text().splitlines())
    kept = s3.objects("crawls", "run/")
    for name, data in files_of(here).items():
        stage, _, file = name.partition("/")
        assert kept[f"run/stages/{stage}-{there.keys[stage]}/{file}"] == data
    assert "run/run.json" in kept
    assert not [key for key in kept if "/parts/" in key]
