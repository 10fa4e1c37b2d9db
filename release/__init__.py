"""Builds the package and tries what was built in an empty environment; ``python -m release --help``."""
