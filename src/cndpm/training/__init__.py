"""A training step, many times, as fast as the device can."""
