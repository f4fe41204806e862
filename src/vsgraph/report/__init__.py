"""A report on a correction: static pages that open from disk, work offline and run no foreign code.

Titles, tags and class names come from the web. The templates escape every value, the pages forbid
foreign scripts, and pictures are decoded and encoded again.
"""

from vsgraph.report.write import write_report

__all__ = ["write_report"]
