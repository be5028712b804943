"""Images: decoding, resizing, cropping, augmentation, and iterators over image files and records."""

from . import augment, detection, functions, image
from .augment import *
from .detection import *
from .functions import *
from .iterator import ImageIter

__all__ = ["image", "ImageIter"]
__all__ += augment.__all__
__all__ += detection.__all__
__all__ += functions.__all__
