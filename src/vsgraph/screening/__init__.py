"""Copies of the same picture, placeholders, and pictures that show little or nothing."""

from vsgraph.screening.copies import NOTHING, Compared, find_copies, known_pairs
from vsgraph.screening.measured import measure_pictures
from vsgraph.screening.screened import Screening, screen

__all__ = [
    "NOTHING",
    "Compared",
    "Screening",
    "find_copies",
    "known_pairs",
    "measure_pictures",
    "screen",
]
