"""What this package costs, as ratios measured in one run: the modules here, `benchmarks.costs` first."""
