"""What people say that images show: journals of answers, merged and matched with a crawl."""

from vsgraph.answers.journal import AUDIT, TEACH, Answer, Journal
from vsgraph.answers.merged import Answers, Conflict, picture_keys, read_answers

__all__ = [
    "AUDIT",
    "TEACH",
    "Answer",
    "Answers",
    "Conflict",
    "Journal",
    "picture_keys",
    "read_answers",
]
