"""Label Studio's own server: imports our tasks with predictions; `decide` takes its export."""

import json
import os
import sys
import urllib.request
from pathlib import Path

import pytest

from servers import free_port, started
from vsgraph.runs import Run
from vsgraph.runs.decide import decide


@pytest.fixture(scope="module")
def export(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "labelstudio"
    run.export(folder, to="labelstudio")
    return folder


def test_its_own_code_accepts_the_setup_and_every_task(export, run):
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface(
        (export / "labeling_config.xml").read_text()
    )
    interface.validate()
    tasks = json.loads((export / "tasks.json").read_text())
    assert len(tasks) == len(run.correction)
    for task in tasks:
        assert interface.validate_task({"data": task["data"]})
        for prediction in task["predictions"]:
            assert interface.validate_prediction(prediction, return_errors=True) == []


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start Label Studio; yield a function that asks it."""
    pytest.importorskip("label_studio")
    folder = tmp_path_factory.mktemp("label-studio")
    port = free_port()
    token = "0123456789abcdef0123456789abcdef01234567"
    command = [
        str(Path(sys.executable).with_name("label-studio")), "start", "--no-browser", "--port",
        str(port), "--data-dir", str(folder), "--username", "a@example.com", "--password",
        "password-of-a-test", "--user-token", token, "--enable-legacy-api-token",
    ]  # fmt: skip
    environment = {**os.environ, "LATEST_VERSION_CHECK": "false", "COLLECT_ANALYTICS": "false",
                   "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "", "HOME": str(folder)}  # fmt: skip

    def ask(method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Token {token}", "Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")

    with started(command, folder / "log", port, environment):
        yield ask


def test_the_server_takes_our_tasks_and_decide_its_export(server, export, copy, tmp_path):
    config = (export / "labeling_config.xml").read_text()
    project = server("POST", "/api/projects/", {"title": "made up", "label_config": config})["id"]
    tasks = json.loads((export / "tasks.json").read_text())
    done = server("POST", f"/api/projects/{project}/import", tasks)
    assert (done["task_count"], done["prediction_count"]) == (len(tasks), len(tasks))
    listed = server("GET", f"/api/tasks/?project={project}&page_size=1000&fields=all")["tasks"]
    first = next(task for task in listed if task["data"]["decision"] == "keep")
    found = first["predictions"][0]
    assert found["result"][0]["value"]["choices"] == [first["data"]["final_label"]]
    assert found["score"] == pytest.approx(first["data"]["confidence"])
    other = next(n for n in copy.correction.class_names if n != first["data"]["final_label"])
    chosen = [{"from_name": "label", "to_name": "image", "type": "choices",
               "value": {"choices": [other]}}]  # fmt: skip
    server("POST", f"/api/tasks/{first['id']}/annotations/", {"result": chosen})
    exported = server("GET", f"/api/projects/{project}/export?exportType=JSON")
    (tmp_path / "export.json").write_text(json.dumps(exported))
    decide(copy, tmp_path / "export.json", reviewer="ben")
    again = Run.open(copy.path)
    row = copy.crawl.table["image"].to_pylist().index(first["data"]["path"])
    assert again.correction.class_names[again.correction.final_labels[row]] == other
