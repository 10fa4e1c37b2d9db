"""Neural experts: densities and predictors trained by gradient, and the bank that evaluates them at once."""
