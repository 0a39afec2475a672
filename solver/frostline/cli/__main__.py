"""``python -m frostline.cli``."""

from frostline.cli import main

main()
