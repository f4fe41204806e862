"""Corrected images as a dataset of torch, for training loops of one's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from vsgraph.crawls.crawl import Crawl
from vsgraph.pictures.decode import Preparation, read_picture
from vsgraph.pictures.opener import PictureError
from vsgraph.result.correction import Correction
from vsgraph.training.batches import label_rows
from vsgraph.training.labels import corrected_labels

CROP = 0.875  # share of the shorter side, as networks of ImageNet see pictures


class TorchDataset(Dataset):
    """Pictures, soft labels and weights of the images that a correction left.

    An item is a picture, float (3, side, side) in 0..1, or what `transform` makes of the picture,
    uint8 (side, side, 3); its label, float (n_classes,); and its weight, how probable its final
    label is. A picture that cannot be read is black and has no label and no weight.

    Attributes
    ----------
    rows : int array
        The row of each item in the crawl.
    class_names : tuple of str
        What the columns of the labels stand for.
    """

    def __init__(
        self,
        crawl: Crawl,
        correction: Correction,
        *,
        side: int = 224,
        labels: str = "final",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        chosen = corrected_labels(correction, labels)
        self.rows = chosen.rows
        self.class_names = correction.class_names
        self._labels, self._crawl, self._transform = chosen.table, crawl, transform
        self._weights = correction.confidence.astype(np.float32)
        self._preparation = Preparation(side, side, CROP)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> tuple[Any, Tensor, Tensor]:
        row = int(self.rows[number])
        try:
            pixels = read_picture(self._crawl.read_image(row), self._preparation)
        except PictureError:
            pixels, is_there = self._black(), 0.0
        else:
            is_there = 1.0
        label = torch.from_numpy(label_rows(self._labels, np.array([row]))[0])
        weight = torch.tensor(float(self._weights[row]) * is_there)
        return self._finish(pixels), label * is_there, weight

    def _black(self) -> Any:  # noqa: ANN401
        side = self._preparation.height
        return np.zeros((side, side, 3), np.uint8)

    def _finish(self, pixels: Any) -> Any:  # noqa: ANN401
        if self._transform is not None:
            return self._transform(pixels)
        return torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1).float() / 255
