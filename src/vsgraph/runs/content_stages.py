"""The stages that read pictures and texts: vectors, measures, and copies found by them."""

from pathlib import Path
from typing import Any

from vsgraph.encoders import embed_images, embed_texts
from vsgraph.pictures.measures import MEASURES
from vsgraph.runs.job import RunJob
from vsgraph.runs.stage_files import save_compared
from vsgraph.screening import find_copies, measure_pictures, screen


def encode_pictures(job: RunJob, folder: Path) -> dict[str, Any]:
    """Encode the pictures, except those that this run or one beside it has already."""
    known = job.folder.former_stages("pictures", job.crawl.root)
    vectors = embed_images(job.crawl, job.image_encoder, folder, known=known, progress=job.progress)
    problems = vectors.record["problems"]
    for line in job.crawl.problems.lines(problems):
        job.tell(f"problem: {line}")
    if problems:
        job.tell("such images are judged by their text alone; exports of pictures leave them out")
    return {"encoder": vectors.record["encoder"], "problems": problems}


def measure(job: RunJob, folder: Path) -> dict[str, Any]:
    """Measure the pictures, except those that this run or one beside it has already."""
    known = job.folder.former_stages("measures", job.crawl.root)
    measures = measure_pictures(job.crawl, folder, known=known, progress=job.progress)
    return {"problems": measures.record["problems"]}


def encode_texts(job: RunJob, folder: Path) -> dict[str, Any]:
    """Encode the texts, except those that this run or one beside it has already."""
    known = job.folder.former_stages("texts", job.crawl.root)
    vectors = embed_texts(job.crawl, job.text_encoder, folder, known=known, progress=job.progress)
    return {"encoder": vectors.record["encoder"]}


def screen_pictures(job: RunJob, folder: Path) -> dict[str, Any]:
    """Find copies, placeholders and flawed pictures."""
    measures, labels = job.outputs.measures(), job.crawl.labels_matrix()
    keys = None if measures is None else measures.keys
    squares = None if measures is None else measures.vectors[:, len(MEASURES) :]
    graph = job.result("graph").adjacency
    known = job.known_pairs(keys)
    copies = find_copies(keys, squares, graph, known=known, progress=job.progress)
    screening = screen(measures, copies.groups, labels)
    screening.save(folder)
    save_compared(copies.compared, folder)
    job.know_copies(copies.groups)
    lines = screening.lines(job.crawl)
    for line in lines:
        job.tell(line)
    return {"found": lines}
