"""Experts, each a density of x and a predictor of y, and the banks that evaluate all of them at once."""
