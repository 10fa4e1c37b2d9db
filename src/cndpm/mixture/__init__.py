"""Dirichlet-process mathematics on plain tensors: responsibilities, novelty, similarity and pruning of experts."""
