"""The inputs of a run besides its settings: encoders, meanings, the user's own arrays."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from vsgraph.common.checks import check_known
from vsgraph.encoders.sources.checkpoints import is_checkpoint
from vsgraph.errors import InputError

FILES = ("meanings", "features", "text_embeddings", "label_embeddings", "cnn_probs", "graph")
ENCODERS = ("image_encoder", "text_encoder")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choices:
    """The inputs of a run besides its settings; paths become absolute.

    Attributes
    ----------
    image_encoder, text_encoder, runtime, precision : str
        See :func:`~vsgraph.encoders.image_encoder` and :func:`~vsgraph.encoders.text_encoder`.
    meanings : path, optional
        A table of the classes' meanings, written by ``vsgraph describe`` and edited by you.
    features, text_embeddings, label_embeddings, cnn_probs, graph : path, optional
        Your own arrays (``.npy``; the graph ``.npz``), one row per image of the crawl.
    probe : bool
        Train a linear probe on the web labels for ``p_c``, if `cnn_probs` is not given and the
        image encoder was not trained on the classes.

    Examples
    --------
    >>> Choices(image_encoder="lite1").text_encoder
    'minilm'
    """

    image_encoder: str = "lite0"
    text_encoder: str = "minilm"
    runtime: str = "auto"
    precision: str = "auto"
    meanings: Path | None = None
    features: Path | None = None
    text_embeddings: Path | None = None
    label_embeddings: Path | None = None
    cnn_probs: Path | None = None
    graph: Path | None = None
    probe: bool = True

    def __post_init__(self) -> None:
        for name in FILES:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str | Path):
                raise InputError(f"{name} must be the path of a file, got {type(value).__name__}")
            if value is not None:
                object.__setattr__(self, name, Path(value).resolve())
        for name in ENCODERS:
            path = Path(getattr(self, name)).expanduser()
            if path.exists():
                object.__setattr__(self, name, str(path.resolve()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return choices from names and values; unknown names are errors."""
        check_known("choice", values, [field.name for field in dataclasses.fields(cls)])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the choices as plain values, for JSON."""
        values = dataclasses.asdict(self)
        return {name: str(v) if isinstance(v, Path) else v for name, v in values.items()}

    @property
    def is_trained(self) -> bool:
        """Whether the image encoder is a network trained on classes, which also gives ``p_c``."""
        return self.features is None and is_checkpoint(Path(self.image_encoder))
