"""Training steps with little overhead: a fused optimiser, and steps recorded as CUDA graphs."""
