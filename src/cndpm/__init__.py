"""Task-free continual learning with a Dirichlet-process mixture of neural experts (CN-DPM)."""

__version__ = "0.1.0"
