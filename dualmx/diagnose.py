"""`python -m dualmx.diagnose`: the same as `dualmx diagnose`."""

import sys

from .tools.diagnose import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
