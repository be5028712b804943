"""`python -m dualmx.launch`: the same as `dualmx-launch`."""

import sys

from . import main

sys.exit(main())
