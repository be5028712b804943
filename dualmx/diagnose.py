"""`python -m dualmx.diagnose`: the same as `dualmx diagnose`."""

from __future__ import annotations

import sys

from .tools.diagnose import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
