"""Tables of the documentation, written from the records in ``docs/results/records``."""
