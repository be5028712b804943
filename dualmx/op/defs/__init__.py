
from . import window  # noqa: F401
