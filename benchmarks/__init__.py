"""What this package costs, as ratios measured in one run: `cndpm bench` and the modules here."""
