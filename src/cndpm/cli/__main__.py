"""``python -m cndpm.cli``."""

from cndpm.cli import main

main()
