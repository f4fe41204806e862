"""Copies of the same picture, placeholders, and pictures that show little or nothing."""

from vsgraph.screening.copies import find_copies
from vsgraph.screening.measured import measure_pictures
from vsgraph.screening.screened import Screening, screen

__all__ = ["Screening", "find_copies", "measure_pictures", "screen"]
