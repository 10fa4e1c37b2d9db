"""Every compared method, one file each."""
