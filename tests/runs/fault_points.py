"""Commands that are killed, or fail, at each of their writes: ``make faults`` tests all of them.

After each fault, reading must give the old result or the new one, or say that there is none. Then
the command is run again and must leave what it leaves undisturbed, byte by byte.
"""

import argparse
import collections
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from faults import KINDS, Fault, call
from small_crawl import Tiny, change_crawl, write_small_crawl

from vsgraph.cli import main as command_line
from vsgraph.common.files import LEFTOVER, mend_leftovers
from vsgraph.encoders.vectors import PLACES, load_batch
from vsgraph.errors import InputError, VSGraphError
from vsgraph.exports import FORMATS
from vsgraph.neighbors import search
from vsgraph.runs import Run

SETTINGS = ("n_neighbors=3", "anchors_per_class=2")
FILES = {"csv": ".csv", "parquet": ".parquet", "coco": ".json"}
TIMES = ("finished", "seconds", "images_per_second", "when", "batch")
NOTHING = "nothing"


@dataclasses.dataclass
class Scenario:
    """A command, what is there before it, and how its result is read."""

    name: str
    out: Path  # the folder in which writes fail
    arguments: list[str]
    read: Callable[[Path], object]  # the result as others read it, or NOTHING
    whole: Callable[[Path], object]  # everything that is left
    before: list[list[str]] = dataclasses.field(default_factory=list)
    change: Callable[[], None] = lambda: None  # between these commands and the one that fails
    partly: Callable[[object], list[object]] = lambda _: []  # results on the way to the new one

    seen: set[str] = dataclasses.field(default_factory=set)  # states from which it ran again

    def prepare(self, store: Path) -> None:
        """Do what comes before, and note the undisturbed result."""
        self.saved = store / self.name
        self.out.mkdir(parents=True, exist_ok=True)
        for arguments in self.before:
            run_command(arguments)
        self.change()
        shutil.copytree(self.out, self.saved, symlinks=True)
        self.old = self.read(self.out)
        done = call(self.command, self.out)
        assert done.code == 0, done.told
        self.n_writes = done.n_writes
        self.new, self.undisturbed = self.read(self.out), self.whole(self.out)
        self.restore()
        assert call(self.command, self.out).code == 0
        assert self.whole(self.out) == self.undisturbed, "two undisturbed runs differ"

    def restore(self) -> None:
        """Go back to what was there before."""
        shutil.rmtree(self.out)
        shutil.copytree(self.saved, self.out, symlinks=True)

    def command(self) -> None:
        """Run the command as a user does."""
        command_line(self.arguments, prog_name="vsgraph")

    def test(self, fault: Fault) -> str:
        """Return what a fault left: old, new, partly or nothing; raise an error if it is bad."""
        self.restore()
        ended = call(self.command, self.out, fault)
        refuse_bad_end(ended, fault)
        found = self.read(self.out)
        allowed = {"old": [self.old], "new": [self.new], "partly": self.partly(self.new)}
        named = [name for name, values in allowed.items() if found in values]
        assert named, f"neither the old nor the new result: {found}"
        if ended.code == 0:
            assert named[0] == "new" or self.old == self.new, "says it is done"
        self.run_again()
        return NOTHING if found == NOTHING else named[0]

    def run_again(self) -> None:
        """Run the command again, unless the same files were there after an earlier fault."""
        state = digest(state_of(self.out))
        if state in self.seen:
            return
        again = call(self.command, self.out)
        assert again.code == 0, f"cannot run again: {again.told}"
        found = self.whole(self.out)
        assert found == self.undisturbed, different(found, self.undisturbed)
        self.seen.add(state)


def refuse_bad_end(ended, fault) -> None:
    """Refuse tracebacks, hanging, and errors of more than one line."""
    assert "Traceback" not in ended.told, ended.told
    if fault.kind == "kill":
        assert ended.code in {0, -9}, ended
        return
    assert ended.code in {0, 1, 3}, ended
    if ended.code:
        errors = re.findall("^Error: .*", ended.told, re.MULTILINE)
        assert len(errors) == 1, ended.told
        assert ended.told.rstrip().endswith(errors[0]), ended.told


def run_command(arguments) -> None:
    """Run a command without a fault."""
    done = call(lambda: command_line(arguments, prog_name="vsgraph"), Path("/nowhere"))
    assert done.code == 0, done.told


def different(one, other) -> str:
    """Return the files in which two results differ."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return f"{one} is not {other}"
    return str(sorted(name for name in {*one, *other} if one.get(name) != other.get(name)))


# what is compared


def digest(*parts) -> str:
    """Return a digest of arrays, bytes and other values."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            part = np.ascontiguousarray(part).tobytes()
        total.update(part if isinstance(part, bytes) else repr(part).encode())
    return total.hexdigest()[:16]


def without_times(value):
    """Return a JSON value without what is different each time."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def content(path: Path) -> str:
    """Return a digest of a file, without times if it is whole."""
    if path.is_symlink():
        return digest(str(path.readlink()))
    if path.name == PLACES:  # by the numbers and times of files
        return PLACES
    if path.name.startswith("batch-"):
        with contextlib.suppress(InputError):  # half of a file
            batch = load_batch(path)
            return digest(*dataclasses.astuple(dataclasses.replace(batch, places=b"")))
    if path.suffix in {".json", ".jsonl"}:
        lines = path.read_text().splitlines()
        lines = lines if path.suffix == ".jsonl" else ["".join(lines)]
        with contextlib.suppress(ValueError):  # half of a file
            return digest(json.dumps([without_times(json.loads(line)) for line in lines]))
    return digest(path.read_bytes())


def tree(folder: Path, *, but=()) -> dict[str, str]:
    """Return a digest of every file below a folder."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_symlink() or p.is_file()]
    return {str(p.relative_to(folder)): content(p) for p in files if p.name not in but}


def state_of(folder: Path) -> list[tuple[str, str]]:
    """Return every file and folder with its content, but for random parts of names."""
    paths = [(re.sub(f"({LEFTOVER}.*?)-[a-z0-9_]{{8}}(?=/|$)", r"\1", str(p)), p)
             for p in folder.rglob("*")]  # fmt: skip
    return sorted(
        (name, "folder" if p.is_dir() and not p.is_symlink() else content(p)) for name, p in paths
    )


def read_run(out: Path):
    """Return digests of a run's labels and of its report."""
    top = out / "report.html"
    if top.exists():
        target = re.search('href="([^"]*)"', top.read_text())[1]
        assert (out / target).exists(), "report.html leads nowhere"
    try:
        run = Run.open(out)
    except InputError as error:
        return NOTHING if re.search("its stage decisions|is not a run", str(error)) else str(error)
    found, crawl = run.correction, run.crawl
    labels = digest(
        crawl.table["image"].to_pylist(), found.final_labels, found.decisions, found.rules,
        found.confidence, np.asarray(found.final_probs), found.adjacency.data, found.settings,
        run.meanings, np.asarray(run.features), run.counts,
    )  # fmt: skip
    report = digest(tree(run.page.parent)) if "report" in run.keys else None
    return labels, report


def whole_run(out: Path) -> dict[str, str]:
    """Return digests of all files that the current result consists of; refuse leftovers."""
    run = Run.open(out)
    stages = {run.outputs[name].name for name in run.keys}
    files = tree(out, but=[".lock"])
    unknown = [n for n in files if "/." in f"/{n}" or ".parts" in n]
    assert not unknown, f"left behind: {unknown}"
    return {
        name: value
        for name, value in files.items()
        if not name.startswith("stages/") or name.split("/")[1] in stages
    }


def read_export(out: Path):
    """Return a digest of an export; what was being replaced is put back by the next start."""
    shown = [path for path in out.iterdir() if not path.name.startswith(".")]
    if not shown:
        mend_leftovers(out)
        shown = [path for path in out.iterdir() if not path.name.startswith(".")]
    return digest(whole_export(out, hidden=False)) if shown else NOTHING


def whole_export(out: Path, *, hidden=True) -> dict[str, str]:
    """Return digests of all files of an export; refuse leftovers."""
    files = tree(out)
    if hidden:
        assert not [name for name in files if name.startswith(".")], "left behind"
    return {name: value for name, value in files.items() if not name.startswith(".")}


def read_model(out: Path):
    """Return a digest of a trained model."""
    from vsgraph.encoders.sources.checkpoints import (
        WEIGHTS,
        Checkpoint,
        is_checkpoint,
        load_weights,
    )

    mend_leftovers(out)
    if not is_checkpoint(out / "model"):
        return NOTHING
    checkpoint = Checkpoint.load(out / "model")
    weights = load_weights(out / "model" / WEIGHTS)
    return digest(checkpoint, *(weights[name].numpy() for name in sorted(weights)))


def whole_training(out: Path) -> dict[str, str]:
    """Return digests of all files of a training, but for its curves and speeds."""
    return tree(out, but=[".lock", "curves.svg", "last.safetensors"])


# the scenarios


def correct_scenarios(world: Path) -> list[Scenario]:
    """Return a first run, one with other settings, and ones on a changed and a grown crawl."""
    changing, growing = world / "changing", world / "growing"
    shutil.copytree(world / "crawl", changing)
    lines = (world / "crawl" / "plain.jsonl").read_text().splitlines(keepends=True)
    shutil.copytree(world / "crawl", growing)
    (growing / "plain.jsonl").write_text("".join(lines[:-1]))
    search.FEW_TO_UPDATE = 4  # so that the graph of twelve pictures is updated

    def arguments(crawl, out, *more):
        settings = [word for one in SETTINGS for word in ("--set", one)]
        return ["correct", str(crawl / "plain.jsonl"), "-o", str(out), *settings, "--text-encoder",
                "lsa", "--meanings", str(crawl / "meanings.csv"), "-q", *more]  # fmt: skip

    def make(name, crawl, *more, is_new=False, **options):
        out = world / name
        before = [] if is_new else [arguments(crawl, out)]
        return Scenario(
            name, out, options.pop("arguments", arguments(crawl, out, *more)), read_run, whole_run,
            before=options.pop("before", before), partly=lambda new: [(new[0], None)], **options,
        )  # fmt: skip

    crawl, swept = world / "crawl", "correct with third settings"
    command_line(arguments(crawl, world / "warm"), standalone_mode=False)  # imports everything
    return [
        make("correct from nothing", crawl, is_new=True),
        make("correct with other settings", crawl, "--set", "anchors_per_class=1"),
        make(swept, crawl, "--set", "n_neighbors=4",
             before=[arguments(crawl, world / swept),
                     arguments(crawl, world / swept, "--set", "n_neighbors=2")]),
        make("correct a changed crawl", changing, change=lambda: change_crawl(changing)),
        make("correct a grown crawl", growing,
             change=lambda: (growing / "plain.jsonl").write_text("".join(lines))),
    ]  # fmt: skip


def export_scenarios(world: Path) -> list[Scenario]:
    """Return exports in each format and labels of new images, also in the place of others."""
    runs = {}
    for number, setting in enumerate(("anchors_per_class=2", "anchors_per_class=1")):
        runs[number] = world / f"run {number}"
        run_command(["correct", str(world / "crawl" / "plain.jsonl"), "-o", str(runs[number]),
                     "--set", "n_neighbors=3", "--set", setting, "--text-encoder", "lsa", "-q",
                     "--meanings", str(world / "crawl" / "meanings.csv"),
                     "--no-report"])  # fmt: skip
    scenarios = []
    for to in FORMATS:
        for name, is_new in ((f"export {to}", True), (f"export {to} --overwrite", False)):
            out = world / name
            where = ["--to", to, "-o", str(out / f"made{FILES.get(to, '')}")]
            first = ["export", str(runs[0]), *where]
            if is_new:  # imports everything
                elsewhere = str(world / "warm" / to)
                with contextlib.redirect_stdout(io.StringIO()):
                    command_line([*first[:-1], elsewhere], standalone_mode=False)
            second = ["export", str(runs[1]), *where, "--overwrite"]
            scenarios.append(Scenario(
                name, out, first if is_new else second, read_export, whole_export,
                before=[] if is_new else [first],
            ))  # fmt: skip
            if is_new:  # its second start must not be refused
                scenarios[-1].arguments = [*first, "--overwrite"]
    table = str(world / "crawl" / "plain.jsonl")
    for name, before in (("label", []), ("label --overwrite", [0])):
        where = [table, "-o", str(world / name / "made.csv"), "-q", "--overwrite"]
        calls = [["label", str(runs[number]), *where] for number in (*before, 1)]
        scenarios.append(Scenario(name, world / name, calls.pop(), read_export, whole_export,
                                  before=calls))  # fmt: skip
    return scenarios


def answer_scenarios(world: Path) -> list[Scenario]:
    """Return answers in a new journal and in one that exists, and a correction that has some."""
    crawl, tables = world / "crawl", {}
    rows = [json.loads(line) for line in (crawl / "plain.jsonl").read_text().splitlines()]
    for number, (start, stop) in {"one": (0, 1), "two": (0, 2), "three": (0, 3), "all": (0, 6),
                                  "before": (6, 8)}.items():  # fmt: skip
        tables[number] = world / f"{number}.csv"
        lines = [f"{row['file_name']},none\n" for row in rows[start:stop]]
        tables[number].write_text("image,label\n" + "".join(lines))

    def correct(out, *more):
        return ["correct", str(crawl / "plain.jsonl"), "-o", str(out), "--set", "n_neighbors=3",
                "--set", "anchors_per_class=2", "--text-encoder", "lsa", "-q", "--meanings",
                str(crawl / "meanings.csv"), *more]  # fmt: skip

    def decide(out, table):
        return ["decide", str(out), str(tables[table]), "--reviewer", "ann"]

    def after(*steps):
        out = world / "warm" / "-".join(steps)
        for arguments in (correct(out, "--no-report"), *(decide(out, step) for step in steps)):
            with contextlib.redirect_stdout(io.StringIO()):
                command_line(arguments, standalone_mode=False)
        return read_run(out)

    partly = [after("before", step) for step in ("one", "two", "three")]  # imports everything, too
    new, old, told = (world / name for name in ("decide", "decide again", "correct with answers"))
    return [
        Scenario("decide", new, decide(new, "one"), read_run, whole_run,
                 before=[correct(new, "--no-report")]),
        Scenario("decide again", old, decide(old, "all"), read_run, whole_run,
                 before=[correct(old, "--no-report"), decide(old, "before")],
                 partly=lambda _: partly),
        Scenario("correct with answers", told, correct(told), read_run, whole_run,
                 before=[correct(told), decide(told, "all")],
                 partly=lambda new: [(new[0], None)]),
    ]  # fmt: skip


def train_scenarios(world: Path) -> list[Scenario]:
    """Return a training, and one that replaces another."""
    sys.path.append(str(Path(__file__).parent.parent / "training"))
    import torch
    from training_data import tiny_network, write_photos

    torch.set_num_threads(1)
    write_photos(world / "photos", per_class=4)
    network = tiny_network(world / "network")

    def arguments(out, *more):
        return ["train", str(world / "photos"), "-o", str(out / "model"), "--network", network,
                "--set", "batch_size=6", "--epochs", "2", "-q", *more]  # fmt: skip

    def make(name, *more, in_epochs=False, **options):
        between = [] if "before" in options else [NOTHING]  # an old model stands to the end
        if in_epochs:
            between += models_of_epochs(arguments(world / f"{name} in epochs", *more))[:1]
        return Scenario(
            name, world / name, arguments(world / name, *more), read_model, whole_training,
            partly=lambda _: between, **options,
        )  # fmt: skip

    other = ["--set", "learning_rate=0.5", "--overwrite"]
    return [
        make("train", in_epochs=True),
        make("train --overwrite", *other, before=[arguments(world / "train --overwrite")]),
        make("train --freeze", "--freeze"),
        make("train --freeze --overwrite", "--freeze", *other,
             before=[arguments(world / "train --freeze --overwrite")]),
    ]  # fmt: skip


def models_of_epochs(arguments) -> list[object]:
    """Train in this process, and return a digest of the model after each epoch."""
    from vsgraph.training import trainer

    found, write = [], trainer.write_history
    trainer.write_history = lambda folder, history: (
        write(folder, history),
        found.append(read_model(folder.parent)),
    )
    command_line(arguments, standalone_mode=False)
    trainer.write_history = write
    return found


MAKERS = {"correct": correct_scenarios, "export": export_scenarios, "answers": answer_scenarios,
          "train": train_scenarios}  # fmt: skip


def main() -> int:
    """Test all points, or a sample of them; return how many failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("groups", nargs="*", default=list(MAKERS), metavar="|".join(MAKERS))
    options.add_argument("--sample", type=int, help="points per scenario, evenly spread")
    options.add_argument("--only", default="", help="a part of the scenarios' names")
    given = options.parse_args()
    import vsgraph.runs.job

    vsgraph.runs.job.open_image_encoder = lambda *_: Tiny()
    counts, n_bad, started = collections.Counter(), 0, time.monotonic()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        world, store = Path(folder) / "world", Path(folder) / "store"
        write_small_crawl(world / "crawl")
        for group in given.groups:
            for scenario in MAKERS[group](world):
                if given.only in scenario.name:
                    scenario.prepare(store)
                    found, bad = test_scenario(scenario, given.sample)
                    counts += found
                    n_bad += bad
    total = ", ".join(f"{count} {name}" for name, count in counts.items())
    seconds = time.monotonic() - started
    print(f"{counts.total() + n_bad} faults: {total}; {n_bad} wrong; {seconds:.0f} s")
    return min(n_bad, 1)


def test_scenario(scenario, sample) -> tuple[collections.Counter, int]:
    """Test the points of a scenario; print and return what was found."""
    points = [Fault(kind, at) for at in range(scenario.n_writes) for kind in KINDS]
    if sample is not None and sample < len(points):
        places = np.linspace(0, len(points) - 1, sample).round().astype(int)
        points = [points[place] for place in places]
    found, bad = collections.Counter(), []
    for fault in points:
        try:
            found[scenario.test(fault)] += 1
        except (AssertionError, VSGraphError, OSError) as error:
            bad.append((fault, error))
    total = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
    print(
        f"{scenario.name}: {scenario.n_writes} writes, {len(points)} faults: {total}; run "
        f"again from {len(scenario.seen)} different states",
        flush=True,
    )
    for fault, error in bad[:10]:
        print(f"  WRONG after {fault.kind} at {fault.at}: {error}", flush=True)
    if bad:
        print(f"  {len(bad)} wrong in all", flush=True)
    return found, len(bad)


if __name__ == "__main__":
    sys.exit(main())
