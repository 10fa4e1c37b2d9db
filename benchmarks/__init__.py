"""What this package costs: `python -m benchmarks` on a CPU, `python -m benchmarks.gpu` on a GPU."""
