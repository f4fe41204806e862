"""The paper from top to bottom, and what goes beyond it."""
