"""Random image transforms: crops, colours, rotations. On the host they draw from NumPy's global generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....core.errors import ArgumentError
from .....image.functions import draw_window, imrotate, random_rotate
from .....io.augment import EIGENVALUES, EIGENVECTORS, GRAY, turn_hue
from .....io.worker_mode import to_numpy, wrap_like
from ....block import Block, HybridBlock
from ....nn import HybridSequential, Sequential
from ...batchify import as_argument, numpy_form, to_host
from .basic import CenterCrop, Transform, as_block, crop, resize

_PCA = EIGENVECTORS * EIGENVALUES


class _HostBlock(Block):
    """A transformation of one image at a time that decides on the host."""

    def __call__(self, x: Any, *args: Any) -> Any:
        host = numpy_form(self) if isinstance(x, np.ndarray) else None
        return super().__call__(x, *args) if host is None else host(x)

    def host(self, x: Any) -> Any:
        """Transform a NumPy array; what takes other arrays as well is the forward pass, too."""
        raise NotImplementedError

    def forward(self, x: Any) -> Any:
        return self.host(x)

    def _cut(self, x: Any, window: tuple[int, int, int, int], size: tuple[int, int], interp: int) -> Any:
        """The window (x, y, width, height) of an image, resized to (width, height) `size`."""
        x0, y0, w, h = window
        out = crop(to_numpy(x), x0=x0, y0=y0, width=w, height=h)  # a program would be compiled for each window
        return wrap_like(out if (w, h) == size else resize(out, size[0], size[1], interp), x)


class RandomResizedCrop(_HostBlock):
    """Cuts out a window of random area and shape, and resizes it (draws from Python's `random`).

    Args:
        size: (width, height) of the result, or one number for both.
        scale: (least, most) share of the image's area.
        ratio: (least, most) width / height.
        interpolation: 1 bilinear, 0 nearest; by OpenCV: 2 bicubic, 3 area, 4 Lanczos.

    Example:
        >>> RandomResizedCrop((4, 6))(mx.nd.ones((20, 30, 3), dtype="uint8")).shape
        (6, 4, 3)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ):
        super().__init__()
        self._size = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        self._scale, self._ratio, self._interp = scale, ratio, interpolation

    def host(self, x: Any) -> Any:
        if len(x.shape) != 3:
            raise ArgumentError(f"RandomResizedCrop: got shape {x.shape}: expected (height, width, channels)")
        least, most = (self._scale, 1.0) if isinstance(self._scale, (int, float)) else self._scale
        window = draw_window(x.shape, (least, most), self._ratio)
        if window is None:
            return CenterCrop(self._size, self._interp)(x)
        return self._cut(x, window, self._size, self._interp)


class RandomCrop(_HostBlock):
    """Cuts out a window somewhere (draws from Python's `random`).

    Args:
        size: (width, height), or one number for both; a smaller image is enlarged.
        pad: rows and columns added around first: one number, (sides, top and bottom) or (left, top, right, bottom).
        pad_value: what they hold.
        interpolation: of enlarging: 1 bilinear, 0 nearest; by OpenCV: 2 to 4.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        pad: int | Sequence[int] | None = None,
        pad_value: float = 0,
        interpolation: int = 1,
    ):
        super().__init__()
        self._size = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        edges = [pad or 0] * 4 if pad is None or isinstance(pad, int) else list(pad)
        edges = edges * 2 if len(edges) == 2 else edges
        if len(edges) != 4 or min(edges) < 0:
            raise ArgumentError(f"RandomCrop: pad={pad}: expected one, two or four numbers of 0 or more")
        self._pad, self._value, self._interp = edges, pad_value, interpolation

    def host(self, x: Any) -> Any:
        if any(self._pad):
            left, top, right, bottom = self._pad
            padded = np.pad(to_numpy(x), ((top, bottom), (left, right), (0, 0)), constant_values=self._value)
            x = wrap_like(padded, x)
        rows, columns = x.shape[:2]
        w, h = self._size
        shrink = min(1.0, columns / w, rows / h)
        w, h = int(w * shrink), int(h * shrink)
        window = (random.randint(0, columns - w), random.randint(0, rows - h), w, h)
        return self._cut(x, window, self._size, self._interp)


class _ColourTransform(Transform):
    """A change of colours of one (H, W, C) image; values of integer images saturate."""

    def change(self, x: np.ndarray) -> np.ndarray:
        """Return the changed float32 image."""
        raise NotImplementedError

    def host(self, x: np.ndarray) -> np.ndarray:
        if x.ndim != 3:
            raise ArgumentError(f"{type(self).__name__}: got shape {x.shape}: expected (height, width, channels)")
        out = self.change(x.astype(np.float32))
        if x.dtype.kind in "iu":
            info = np.iinfo(x.dtype)
            out = np.clip(out, info.min, info.max)
        return out.astype(x.dtype)


class _RandomFactor(_ColourTransform):
    """Draws a factor of 1 ± `strength`."""

    def __init__(self, strength: float):
        super().__init__()
        self._low, self._high = sorted((max(0.0, 1.0 - strength), max(0.0, 1.0 + strength)))

    def _factor(self) -> np.float32:
        return np.float32(np.random.uniform(self._low, self._high))

    @property
    def _factors(self) -> dict[str, float]:
        return {"min_factor": self._low, "max_factor": self._high}


class RandomBrightness(_RandomFactor):
    """Multiplies by 1 ± up to `brightness`."""

    def __init__(self, brightness: float):
        super().__init__(brightness)

    def change(self, x: np.ndarray) -> np.ndarray:
        return x * self._factor()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_brightness(x, **self._factors)


class RandomContrast(_RandomFactor):
    """Blends with the mean grey: 1 ± up to `contrast`."""

    def __init__(self, contrast: float):
        super().__init__(contrast)

    def change(self, x: np.ndarray) -> np.ndarray:
        f = self._factor()
        return x * f + (1 - f) * (np.mean(x @ GRAY) if x.shape[2] == 3 else np.mean(x))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_contrast(x, **self._factors)


class RandomSaturation(_RandomFactor):
    """Blends with the grey of each pixel: 1 ± up to `saturation`."""

    def __init__(self, saturation: float):
        super().__init__(saturation)

    def change(self, x: np.ndarray) -> np.ndarray:
        f = self._factor()
        return x * f + (1 - f) * (x @ GRAY)[..., None] if x.shape[2] == 3 else x

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_saturation(x, **self._factors)


class RandomHue(_RandomFactor):
    """Turns the colours by a number of circles between max(0, 1 - `hue`) and 1 + `hue`."""

    def __init__(self, hue: float):
        super().__init__(hue)

    def change(self, x: np.ndarray) -> np.ndarray:
        return _turned(x, float(self._factor()))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_hue(x, **self._factors)


def _turned(x: np.ndarray, circles: float) -> np.ndarray:
    return turn_hue(x, 2 * np.pi * circles) if x.shape[2] == 3 else x


class RandomColorJitter(_ColourTransform):
    """Brightness, contrast, saturation and hue in random order, each by up to its strength; 0 leaves one out."""

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0):
        super().__init__()
        self._sizes = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}

    def change(self, x: np.ndarray) -> np.ndarray:
        s = self._sizes
        steps: list[Callable[[np.ndarray], np.ndarray]] = []
        if s["brightness"]:
            steps.append(RandomBrightness(s["brightness"]).change)
        if s["contrast"]:
            steps.append(RandomContrast(s["contrast"]).change)
        if s["saturation"]:
            steps.append(RandomSaturation(s["saturation"]).change)
        if s["hue"]:
            steps.append(lambda y: _turned(y, np.random.uniform(-s["hue"], s["hue"])))
        for i in np.random.permutation(len(steps)):
            x = steps[i](x)
        return x

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_color_jitter(x, **self._sizes)


class RandomLighting(_ColourTransform):
    """Adds noise of standard deviation `alpha` along the principal components of ImageNet's colours."""

    def __init__(self, alpha: float):
        super().__init__()
        self._alpha = alpha

    def change(self, x: np.ndarray) -> np.ndarray:
        return x + (_PCA @ np.random.normal(0, self._alpha, 3)).astype(np.float32) if x.shape[2] == 3 else x

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_lighting(x, alpha_std=self._alpha)


class RandomGray(_HostBlock):
    """Makes an (H, W, 3) image grey with probability `p`."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        self._p = _probability("RandomGray", p)

    def host(self, x: np.ndarray) -> np.ndarray:
        if np.random.random() >= self._p:
            return x
        if x.shape[-1:] != (3,):
            raise ArgumentError(f"RandomGray: an image of shape {x.shape}: expected (H, W, 3)")
        return np.repeat((x.astype(np.float32) @ GRAY)[..., None], 3, axis=-1).astype(x.dtype)

    def forward(self, x: Any) -> Any:
        return wrap_like(self.host(to_numpy(x)), x)


class Rotate(_HostBlock):
    """Rotates float32 images (C, H, W) or batches of them; see `mx.image.imrotate`.

    Args:
        rotation_degrees: the angle.
        zoom_in: enlarge until no corner is empty. zoom_out: shrink until the whole image is seen.
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False):
        super().__init__()
        self._args = (rotation_degrees, zoom_in, zoom_out)

    def host(self, x: Any) -> Any:
        return imrotate(x, *self._args)


class RandomRotation(_HostBlock):
    """Rotates float32 images (C, H, W) or batches of them by a random angle; see `mx.image.imrotate`.

    Args:
        angle_limits: (least, most) degrees.
        zoom_in: enlarge until no corner is empty. zoom_out: shrink until the whole image is seen.
        rotate_with_proba: probability that anything is rotated.

    Raises:
        ArgumentError: limits in the wrong order, both zooms, or no probability.
    """

    def __init__(
        self,
        angle_limits: Sequence[float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ):
        super().__init__()
        low, high = angle_limits
        if low >= high:
            raise ArgumentError(f"RandomRotation: angle_limits={tuple(angle_limits)}: expected (least, most)")
        if zoom_in and zoom_out:
            raise ArgumentError("RandomRotation: zoom_in and zoom_out cannot both be true")
        self._args = ((low, high), zoom_in, zoom_out)
        self._p = _probability("RandomRotation", rotate_with_proba)

    def host(self, x: Any) -> Any:
        return x if np.random.random() > self._p else random_rotate(x, *self._args)


class RandomApply(Sequential):
    """Applies a transformation with probability `p`.

    Args:
        transforms: the transformation, a block or a function, or several that follow one another.
        p: the probability.
    """

    def __init__(self, transforms: Any, p: float = 0.5):
        super().__init__()
        self.add(*map(as_block, transforms if isinstance(transforms, (list, tuple)) else [transforms]))
        self.p = _probability("RandomApply", p)

    def host(self, x: Any) -> Any:
        """Transform a NumPy array."""
        if np.random.random() > self.p:
            return x
        for step in self._children.values():
            host = numpy_form(step)
            x = to_host(step(as_argument(step, x))) if host is None else host(x)
        return x

    def __call__(self, x: Any, *args: Any) -> Any:
        host = numpy_form(self) if isinstance(x, np.ndarray) else None
        return super().__call__(x, *args) if host is None else host(x)

    def forward(self, x: Any, *args: Any) -> Any:
        if np.random.random() > self.p:
            return (x, *args) if args else x
        for step in self._children.values():
            x = step(x)
        return (x, *args) if args else x


class HybridRandomApply(HybridSequential):
    """Applies a hybrid transformation with probability `p`; the choice is drawn in the compiled program.

    Args:
        transforms: the transformation; it must keep shape and dtype.
        p: the probability.
    """

    def __init__(self, transforms: HybridBlock, p: float = 0.5):
        super().__init__()
        self.transforms = transforms
        self.add(transforms)
        self.p = _probability("HybridRandomApply", p)

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        drawn = F.random.uniform(0, 1, shape=(1,))
        changed = self.transforms(x)
        chosen = F.broadcast_like(F.cast(drawn <= self.p, "float32").reshape((1, 1, 1)), F.cast(x, "float32"))
        return F.where(chosen, changed, x)


def _probability(who: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{who}: a probability of {p}: expected 0 to 1")
    return p


__all__ = [
    "HybridRandomApply",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomGray",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Rotate",
]
