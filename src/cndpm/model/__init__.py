"""CN-DPM itself: Algorithm 1 composed of its parts, its settings and its oracle."""
