"""The package's version; pyproject.toml has the same, and files say by which one they were written."""

__all__ = ["__version__"]

__version__ = "0.1.0"
