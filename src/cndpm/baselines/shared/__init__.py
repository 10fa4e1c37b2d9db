"""Parts that several of the compared methods have in common."""
