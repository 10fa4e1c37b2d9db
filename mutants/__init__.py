"""Single changes of meaning to the package, each with the claim it breaks and the tests that should notice it."""
