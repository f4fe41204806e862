"""Picture files: the only package in which Pillow opens one."""
