"""The package's version, in the one place where it is written; files say by which one they were made."""

__all__ = ["__version__"]

__version__ = "0.1.0"
"""The version."""
