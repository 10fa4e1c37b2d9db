"""``python -m cndpm``: the command line where the script is not on the path."""

from cndpm.cli import main

main()
