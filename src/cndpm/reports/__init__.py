"""Records turned into tables, figures and a page."""
