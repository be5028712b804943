"""Activation layers: elementwise non-linear functions."""

from __future__ import annotations

from typing import Any

from ... import initializer
from ...core.errors import ArgumentError
from ..hybrid import HybridBlock
from .op_layer import OpLayer


class Activation(OpLayer):
    """Apply `"relu"`, `"sigmoid"`, `"tanh"`, `"softrelu"` (log(1 + e^x)) or `"softsign"` (x / (1 + |x|)).

    Args:
        activation: name of the function.

    Shapes: input and output are equal.

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.nn.Activation("relu")(mx.nd.array([-1, 2])).asnumpy().tolist()
        [0.0, 2.0]
    """

    _named = {"_act_type": "act_type"}

    def __init__(self, activation: str, **kwargs: Any):
        self._act_type = activation
        super().__init__(**kwargs)
        self._prepare("Activation", act_type=activation)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(OpLayer):
    """x for x > 0, alpha·x otherwise.

    Args:
        alpha: slope, 0 or more.

    Raises:
        ArgumentError: a negative slope.

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.nn.LeakyReLU(0.5)(mx.nd.array([-1, 2])).asnumpy().tolist()
        [-0.5, 2.0]
    """

    _named = {"_alpha": "slope"}

    def __init__(self, alpha: float, **kwargs: Any):
        if alpha < 0:
            raise ArgumentError(f"LeakyReLU: alpha={alpha}: expected a slope of 0 or more")
        super().__init__(**kwargs)
        self._alpha = alpha
        self._prepare("LeakyReLU", act_type="leaky", slope=alpha)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(OpLayer):
    """Leaky ReLU whose slope is learned.

    Args:
        alpha_initializer: of the slope; 0.25 by default.
        in_channels: 1 for one common slope, or the number of channels (axis 1) for one slope each.

    Reference: He et al. 2015, Delving Deep into Rectifiers.
    """

    def __init__(self, alpha_initializer: Any = None, in_channels: int = 1, **kwargs: Any):
        super().__init__(**kwargs)
        if alpha_initializer is None:
            alpha_initializer = initializer.Constant(0.25)
        self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)
        self._prepare("LeakyReLU", (self.alpha,), act_type="prelu")

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(OpLayer):
    """x for x > 0, alpha·(e^x - 1) otherwise.

    Args:
        alpha: scale of the negative side.

    Reference: Clevert et al. 2016, Exponential Linear Units.
    """

    _named = {"_alpha": "slope"}

    def __init__(self, alpha: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._alpha = alpha
        self._prepare("LeakyReLU", act_type="elu", slope=alpha)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(OpLayer):
    """Scaled ELU, whose constants keep mean 0 and variance 1 through many layers.

    Reference: Klambauer et al. 2017, Self-Normalizing Neural Networks.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._prepare("LeakyReLU", act_type="selu")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(OpLayer):
    """x·Φ(x), with Φ the normal distribution function (the erf form).

    Reference: Hendrycks and Gimpel 2016, Gaussian Error Linear Units.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._prepare("LeakyReLU", act_type="gelu")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """x·sigmoid(beta·x).

    Args:
        beta: scale inside the sigmoid.

    Reference: Ramachandran et al. 2017, Searching for Activation Functions.
    """

    def __init__(self, beta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return x * F.sigmoid(self._beta * x, name="fwd")


__all__ = ["Activation", "ELU", "GELU", "LeakyReLU", "PReLU", "SELU", "Swish"]
