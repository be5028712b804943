"""`BucketingModule` under its customary import path."""

from .bucketing import BucketingModule

__all__ = ["BucketingModule"]
