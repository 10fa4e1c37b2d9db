"""Configuration, the one loop that runs a learner on a stream, metrics, and records on disk."""
