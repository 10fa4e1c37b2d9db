"""The family of exceptions by which the package refuses files, data, configurations and runs.

Everything that can go wrong with what comes from outside, such as a damaged file, a configuration that cannot be or a
disk that is full, is one of these; the command line prints its message as one line. Wrong arguments of a call in Python
are ``ValueError`` or ``TypeError``, as scikit-learn has it, and most of the family are kinds of these, too.
"""

from __future__ import annotations

__all__ = ["CNDPMError", "DamageWarning"]


def printable(text: str) -> str:
    """Returns a text in which whatever could command a terminal is written out."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


class CNDPMError(Exception):
    """The class that all exceptions of the package derive from; what a message repeats of a file is printable.

    Example:
        >>> from cndpm.state import load_state
        >>> try:
        ...     load_state("nowhere.cndpm", kind="CNDPMClassifier")
        ... except CNDPMError as error:
        ...     print(error)
        there is no file nowhere.cndpm
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class DamageWarning(UserWarning):
    """Something is damaged, and another copy of it was used.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("error", DamageWarning)  # to be stopped by it instead
    """
