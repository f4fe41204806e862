"""The one place that opens a picture file."""
