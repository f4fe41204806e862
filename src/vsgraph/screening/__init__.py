"""Copies of the same picture, placeholders, and pictures that show little or nothing."""

from vsgraph.screening.copies import find_copies, known_others
from vsgraph.screening.measured import measure_pictures
from vsgraph.screening.screened import Screening, screen

__all__ = ["Screening", "find_copies", "known_others", "measure_pictures", "screen"]
