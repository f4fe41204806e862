"""Errors of a run that would otherwise come only after a long time."""

from pathlib import Path

from vsgraph.common.files import open_array
from vsgraph.crawls import Crawl
from vsgraph.crawls.inspection import text_coverage
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.runs.choices import Choices
from vsgraph.settings import Settings


def refuse_early(crawl: Crawl, choices: Choices, settings: Settings) -> None:
    """Raise errors that would otherwise occur only after a long time."""
    if choices.is_trained:
        model = Path(choices.image_encoder)
        Checkpoint.load(model).refuse_other_classes(crawl.class_names, "the crawl")
    n_images, n_classes = len(crawl), len(crawl.class_names)
    for name, n_rows in (
        ("features", n_images),
        ("text_embeddings", n_images),
        ("label_embeddings", n_classes),
        ("cnn_probs", n_images),
    ):
        own = getattr(choices, name)
        if own is not None and len(open_array(own)) != n_rows:
            raise InputError(f"{own} has {len(open_array(own))} rows, but {n_rows} are needed")
    if choices.features is None and not crawl.has_pictures:
        raise InputError("the crawl has no pictures; give their vectors (--features)")
    if choices.text_embeddings is not None and choices.label_embeddings is None:
        raise InputError("with text_embeddings, also give label_embeddings of the same encoder")
    if (
        choices.text_embeddings is None
        and not settings.text_evidence
        and not text_coverage(crawl)["any"]
    ):
        raise InputError(
            "the crawl has no text for any image, but the paper's forms choose anchors by text; "
            "name the columns that hold it (--column text=NAME)"
        )
