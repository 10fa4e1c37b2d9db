"""Networks of all experts evaluated as few large products."""
