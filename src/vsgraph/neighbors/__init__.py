"""The nearest neighbors of every image: exact, or approximate with a measured recall."""
