"""Corrected data for other programs: :func:`export` writes every format."""

from vsgraph.exports.formats import FORMATS, export
from vsgraph.exports.targets import Exported

__all__ = ["FORMATS", "Exported", "export"]
