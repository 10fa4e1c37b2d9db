"""What one expert is (a density and a predictor), and the banks that evaluate all experts at once."""
