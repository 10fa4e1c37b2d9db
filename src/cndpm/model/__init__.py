"""CN-DPM itself: Algorithm 1 composed of its parts and its settings."""
