"""Tests in `devices` need eight devices, which a process must ask for before it starts; see `test_on_devices`."""

import os

collect_ignore = [] if "device_count=8" in os.environ.get("XLA_FLAGS", "") else ["devices"]
