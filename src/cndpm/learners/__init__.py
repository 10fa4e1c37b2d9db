"""What consumes a stream: CN-DPM and every method it is compared with."""
