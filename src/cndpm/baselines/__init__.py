"""Every compared method, one file each, in which variants of it stand too."""
