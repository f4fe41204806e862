"""A report on a correction: static pages that open from disk, work offline and run no foreign code.

Titles, tags and names of classes come from the web. Every value is escaped by the templates, the
pages forbid scripts but their own, and pictures are decoded and written anew.
"""

from vsgraph.report.write import write_report

__all__ = ["write_report"]
