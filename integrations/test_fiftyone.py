"""FiftyOne with its own database: an export is loaded and given back, the operator corrects."""

import importlib
import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from servers import free_port, started
from vsgraph.runs.decide import decide

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fo(tmp_path_factory):
    """Import FiftyOne with a database and plugins of its own."""
    spec = importlib.util.find_spec("fiftyone")
    program = Path(spec.origin).parent / "db" / "bin" / "mongod" if spec else Path()
    if not program.is_file():
        pytest.skip("FiftyOne's database, mongod, is not installed")
    folder, port = tmp_path_factory.mktemp("fiftyone"), free_port()
    command = [str(program), "--dbpath", str(folder), "--port", str(port), "--nounixsocket"]
    with pytest.MonkeyPatch.context() as patch, started(command, folder / "log", port):
        patch.setenv("HOME", str(folder))
        patch.setenv("FIFTYONE_DATABASE_URI", f"mongodb://127.0.0.1:{port}")
        patch.setenv("FIFTYONE_PLUGINS_DIR", str(HERE))
        patch.setenv("FIFTYONE_DO_NOT_TRACK", "true")
        yield importlib.import_module("fiftyone")


@pytest.fixture(scope="module")
def dataset(fo, run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "fiftyone"
    run.export(folder, to="fiftyone", rejected=True)
    kind = fo.types.FiftyOneImageClassificationDataset
    return fo.Dataset.from_dir(str(folder), dataset_type=kind, data_path="data.json")


def test_labels_confidence_and_decisions_are_shown(dataset, run):
    table = run.to_arrow().to_pylist()
    assert len(dataset) == len(table)
    counts = Counter(row["final_label"] for row in table if row["final_label"])
    assert dataset.count_values("ground_truth.label") == {**counts, None: run.counts["reject"]}
    first = dataset.exists("ground_truth.label").first().ground_truth
    assert (first.url, first.og_image, first.cls) == ("http://example.org/1", "a", "b")
    assert first.tags == []
    by_path = {Path(row["image"]).name: row for row in table}
    labeled = dataset.exists("ground_truth.label")
    for path, confidence, decision, quality in zip(
        *labeled.values(["filepath", "ground_truth.confidence", "ground_truth.decision",
                         "ground_truth.quality"]), strict=True
    ):  # fmt: skip
        row = by_path[Path(path).name]
        assert confidence == pytest.approx(row["confidence"])
        assert (decision, quality) == (row["decision"], pytest.approx(row["quality"]))


def test_what_is_changed_in_fiftyone_is_taken_by_decide(fo, dataset, copy, tmp_path):
    changed = dataset.clone()
    sample = changed.exists("ground_truth.label").first()
    other = next(n for n in copy.correction.class_names if n != sample.ground_truth.label)
    sample.ground_truth.label = other
    sample.save()
    changed.export(
        str(tmp_path / "back"), dataset_type=fo.types.FiftyOneImageClassificationDataset,
        label_field="ground_truth", data_path="data.json",
    )  # fmt: skip
    decide(copy, tmp_path / "back", reviewer="anna")
    row = next(
        i for i, name in enumerate(copy.crawl.table["image"].to_pylist())
        if Path(name).name == Path(sample.filepath).name
    )  # fmt: skip
    again = type(copy).open(copy.path)
    assert again.correction.class_names[again.correction.final_labels[row]] == other
    assert len(again.answers.given) == 1


def test_the_operator_corrects_a_dataset_and_writes_back(fo, run, tmp_path):
    from fiftyone import operators as foo

    crawl = run.crawl
    data = fo.Dataset()
    texts = crawl.texts()
    data.add_samples([
        fo.Sample(
            filepath=str(crawl.root / name), title=texts[row],
            query=fo.Classification(label=crawl.class_names[crawl.web_labels[row]]),
        )
        for row, name in enumerate(crawl.table["image"].to_pylist())
    ])  # fmt: skip
    params = {
        "label_field": "query", "text_field": "title", "out_field": "clean",
        "meanings": str(crawl.root / "meanings.csv"), "run_folder": str(tmp_path / "run"),
        "features": str(run.choices.features), "text_encoder": "lsa", "anchors_per_class": 10,
    }  # fmt: skip
    done = foo.execute_operator(
        "@vsgraph/correction/correct_labels", {"dataset": data, "params": params}
    )
    assert done.result["images"] == len(crawl)
    data.reload()
    assert data.count_values("clean_decision") == {
        word: count for word, count in run.counts.items() if count and word != "unreadable"
    }
    found = np.array([c for c in data.values("clean.confidence") if c is not None])
    left = run.found.confidence[run.found.final_labels >= 0]
    np.testing.assert_allclose(np.sort(found), np.sort(left), atol=1e-6)
