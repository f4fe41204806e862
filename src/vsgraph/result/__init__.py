"""The result of a correction: scores, decisions, explanations."""
