"""Datasets on disk or fetched, scenarios (recipes) and streams (batches)."""
