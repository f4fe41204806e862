"""A page to look at a run, answer what images show, and let the answers teach.

Text and pictures come from the web: templates escape every value, scripts set text as text, and
pictures are decoded and encoded again.
"""
