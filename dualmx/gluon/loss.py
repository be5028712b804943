"""Losses. Each returns one value per sample, the mean over the other axes, unless its docstring says otherwise."""

from __future__ import annotations

import math
from typing import Any

from ..core.argcheck import number
from ..core.errors import ArgumentError
from ..ndarray import NDArray
from .cached_graph import CachedGraph
from .hybrid import HybridBlock
from .pytree import with_class_of


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """Multiply a loss by the weights of samples and by `weight`; losses of users call it by this name."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    return loss if weight is None else loss * number("Loss", "weight", weight)


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """Give `x` the shape of `y`; losses of users call it by this name."""
    return F.reshape_like(x, y)


class Loss(HybridBlock):
    """Base of losses.

    Args:
        weight: factor of the loss; `None` for 1.
        batch_axis: the axis of samples.
    """

    # Library losses have no side effects, so that they run as one traced call even when not hybridized.
    _traced = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._traced = cls.__module__ == __name__

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._weight = weight
        self._batch_axis = batch_axis
        self._graphs: dict[Any, CachedGraph] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_graphs": {}}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_graphs" and "_graphs" in self.__dict__:
            self._graphs.clear()

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute the loss of predictions `x`."""
        if not self._traced or self._active or not isinstance(x, NDArray):
            return super().forward(x, *args)
        key = tuple(map(type, args))
        graph = self._graphs.get(key)
        if graph is None:
            if not all(a is None or isinstance(a, NDArray) for a in args):
                return super().forward(x, *args)
            graph = self._graphs[key] = CachedGraph.trace_hybrid(self, (x, *args))
        out = graph((x, *args))
        return out if x.__class__ is NDArray else with_class_of(x, out)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the loss; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward()")

    def _per_sample(self, F: Any, loss: Any, sample_weight: Any = None) -> Any:
        """Weighted mean over all axes but that of samples."""
        loss = _apply_weighting(F, loss, self._weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class L2Loss(Loss):
    """½·w·(label - pred)².

    Args:
        weight: w.
        batch_axis: the axis of samples.

    Shapes: pred (N, *); label as many elements; sample_weight broadcasts to pred, for example (N, 1); output (N,).

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.loss.L2Loss()(mx.nd.array([[1, 3]]), mx.nd.array([[1, 1]])).asnumpy().tolist()
        [1.0]
    """

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        loss = F.square(F.reshape_like(label, pred) - pred)
        half = 0.5 if self._weight is None else self._weight / 2
        return F.mean(_apply_weighting(F, loss, half, sample_weight), axis=self._batch_axis, exclude=True)


class L1Loss(Loss):
    """w·|label - pred|; arguments and shapes as in `L2Loss`."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        return self._per_sample(F, F.abs(F.reshape_like(label, pred) - pred), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """-w·(label·log p + (1 - label)·log(1 - p)) with p = sigmoid(pred).

    Args:
        from_sigmoid: pred already holds p.
        weight: w.
        batch_axis: the axis of samples.

    Shapes: pred (N, *); label in [0, 1], as many elements; sample_weight broadcasts to pred; pos_weight, a factor of
    the terms of positive labels, too; output (N,).
    """

    def __init__(self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """Loss of each sample."""
        label = F.reshape_like(label, pred)
        if self._from_sigmoid:
            tiny = 1e-12
            positive = F.log(pred + tiny) * label
            if pos_weight is not None:
                positive = F.broadcast_mul(positive, pos_weight)
            loss = -(positive + F.log(1.0 - pred + tiny) * (1.0 - label))
        elif pos_weight is None:
            loss = F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        else:
            factor = 1 + F.broadcast_mul(label, pos_weight - 1)
            loss = pred - pred * label + factor * (F.Activation(-F.abs(pred), act_type="softrelu") + F.relu(-pred))
        return self._per_sample(F, loss, sample_weight)


class SoftmaxCrossEntropyLoss(Loss):
    """-w·log p[label] with p = softmax(pred), or -w·Σ label·log p for label distributions.

    Args:
        axis: of the classes.
        sparse_label: labels are class numbers; otherwise distributions of the shape of pred.
        from_logits: pred already holds log p.
        weight: w.
        batch_axis: the axis of samples.

    Shapes: pred (N, *, C); label (N, *) or as pred; sample_weight broadcasts to (N, *, 1); output (N,).

    Example:
        >>> import dualmx as mx
        >>> loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        >>> loss(mx.nd.zeros((2, 4)), mx.nd.array([0, 3])).asnumpy().round(4)
        array([1.3863, 1.3863], dtype=float32)
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._sparse_label, self._from_logits = axis, sparse_label, from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * F.reshape_like(label, pred), axis=self._axis, keepdims=True)
        return self._per_sample(F, loss, sample_weight)


class KLDivLoss(Loss):
    """w·Σ label·(log label - pred), summed over all axes but that of samples.

    Args:
        from_logits: pred holds log-probabilities; otherwise their log-softmax along `axis` is taken.
        axis: of the classes.
        weight: w.
        batch_axis: the axis of samples.

    Shapes: pred and label (N, *); sample_weight broadcasts to pred; output (N,).
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        loss = _apply_weighting(F, label * (F.log(label + 1e-12) - pred), self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification: -log of the probability of all alignments of a label sequence.

    The last class is the blank; labels count from 0 and are padded with -1.

    Args:
        layout: of pred: `"NTC"` or `"TNC"`.
        label_layout: `"NT"` or `"TN"`.
        weight: factor of the loss.

    Shapes: pred (N, T, C) before softmax; label (N, L); pred_lengths and label_lengths (N,); output (N,).

    Raises:
        ArgumentError: an unknown layout.

    Reference: Graves et al. 2006, Connectionist Temporal Classification.
    """

    def __init__(self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any):
        for what, given, known in (("layout", layout, ("NTC", "TNC")), ("label_layout", label_layout, ("NT", "TN"))):
            if given not in known:
                raise ArgumentError(f"CTCLoss: {what}={given!r}: expected {' or '.join(known)}")
        super().__init__(weight, label_layout.find("N"), **kwargs)
        self._layout, self._label_layout = layout, label_layout

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Loss of each sample."""
        if self._layout == "NTC":
            pred = F.swapaxes(pred, dim1=0, dim2=1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, dim1=0, dim2=1)
        loss = F.CTCLoss(
            pred,
            label,
            pred_lengths,
            label_lengths,
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(Loss):
    """w·(d² / (2·rho) where d = |label - pred| is at most rho, d - rho / 2 beyond).

    Args:
        rho: where the loss turns from quadratic to linear.
        weight: w.
        batch_axis: the axis of samples.

    Shapes: as in `L2Loss`.
    """

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        distance = F.abs(F.reshape_like(label, pred) - pred)
        linear, quadratic = distance - 0.5 * self._rho, (0.5 / self._rho) * F.square(distance)
        return self._per_sample(F, F.where(distance > self._rho, linear, quadratic), sample_weight)


class HingeLoss(Loss):
    """w·max(0, margin - pred·label) for labels -1 and 1.

    Args:
        margin: distance from the boundary that costs nothing.
        weight: w.
        batch_axis: the axis of samples.

    Shapes: as in `L2Loss`.
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        return self._per_sample(F, F.relu(self._margin - pred * F.reshape_like(label, pred)), sample_weight)


class SquaredHingeLoss(HingeLoss):
    """w·max(0, margin - pred·label)² for labels -1 and 1; arguments and shapes as in `HingeLoss`."""

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        hinge = F.relu(self._margin - pred * F.reshape_like(label, pred))
        return self._per_sample(F, F.square(hinge), sample_weight)


class LogisticLoss(Loss):
    """w·log(1 + exp(-pred·label)) for labels -1 and 1.

    Args:
        weight: w.
        batch_axis: the axis of samples.
        label_format: `"signed"` for labels -1 and 1, `"binary"` for 0 and 1.

    Shapes: as in `L2Loss`.

    Raises:
        ArgumentError: an unknown label format.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise ArgumentError(f"LogisticLoss: label_format={label_format!r}: expected 'signed' or 'binary'")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        label = F.reshape_like(label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        return self._per_sample(F, loss, sample_weight)


class TripletLoss(Loss):
    """w·max(0, margin + Σ (positive - pred)² - Σ (negative - pred)²), summed over all axes but that of samples.

    Args:
        margin: by how much the negative must be farther.
        weight: w.
        batch_axis: the axis of samples.

    Shapes: pred, positive, negative (N, *); output (N,).
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        """Loss of each sample."""
        near = F.square(F.reshape_like(positive, pred) - pred)
        far = F.square(F.reshape_like(negative, pred) - pred)
        loss = F.relu(F.sum(near - far, axis=self._batch_axis, exclude=True) + self._margin)
        return _apply_weighting(F, loss, self._weight)


class PoissonNLLLoss(Loss):
    """Negative log-likelihood of counts, pred - target·log pred, averaged over everything into shape (1,).

    Args:
        weight: factor of the loss.
        from_logits: pred holds log-rates: exp(pred) - target·pred.
        batch_axis: the axis of samples.
        compute_full: add Stirling's approximation of log target! where the target exceeds 1.

    Shapes: pred (N, *); target as many elements; sample_weight broadcasts to pred; output (1,).
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08) -> Any:
        """Loss of the batch; `epsilon` keeps log pred finite."""
        target = F.reshape_like(target, pred)
        loss = F.exp(pred) - target * pred if self._from_logits else pred - target * F.log(pred + epsilon)
        if self._compute_full:
            safe = F.maximum(target, 1.0)
            stirling = safe * F.log(safe) - safe + 0.5 * F.log(2 * math.pi * safe)
            loss = loss + F.where(target > 1, stirling, F.zeros_like(stirling))
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


class CosineEmbeddingLoss(Loss):
    """w·(1 - cos) for label 1, w·max(0, cos - margin) for label -1, with the cosine between two vectors.

    Args:
        weight: w.
        batch_axis: the axis of samples.
        margin: cosine up to which a pair of label -1 costs nothing.

    Shapes: input1 and input2 (N, D); label (N,); sample_weight broadcasts to (N, 1); output (N, 1).
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """Loss of each sample."""
        input1 = F.reshape_like(input1, input2)
        product = F.reshape(F.sum(input1 * input2, axis=-1), shape=(-1, 1))
        norms = [F.reshape(F.norm(x, axis=-1), shape=(-1, 1)) for x in (input1, input2)]
        cosine = product / F.maximum(norms[0] * norms[1], 1e-12)
        label = F.reshape(label, shape=(-1, 1))
        loss = (1 - cosine) * (label == 1) + F.relu(cosine - self._margin) * (label == -1)
        return _apply_weighting(F, loss, self._weight, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: each row of one batch should be nearest to its own row of the other.

    The softmax over negative squared distances from row i of x1 to all rows of x2 is compared, by Kullback-Leibler
    divergence, with 1 - smoothing_parameter at i and the rest spread evenly.

    Args:
        smoothing_parameter: share given to the other rows.
        weight: factor of the loss.
        batch_axis: the axis of samples.

    Shapes: x1 and x2 (N, D) with N > 1; output (N,).

    Reference: Bonadiman et al. 2019, Large Scale Question Paraphrase Retrieval with Smoothed Deep Metric Learning.
    """

    def __init__(
        self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._smoothing = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        """Loss of each sample."""
        difference = F.broadcast_sub(F.expand_dims(x1, axis=1), F.expand_dims(x2, axis=0))
        log_prob = F.log_softmax(-F.sum(F.square(difference), axis=2), axis=1)
        rows = F.contrib.arange_like(log_prob, axis=0)
        same = F.broadcast_equal(F.expand_dims(rows, axis=1), F.expand_dims(rows, axis=0))
        others = F.broadcast_div(1 - same, F.sum(1 - same, axis=1, keepdims=True))
        label = same * (1 - self._smoothing) + others * self._smoothing
        return F.sum(label * (F.log(label + 1e-12) - log_prob), axis=self._batch_axis, exclude=True)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss
SoftmaxCELoss = SoftmaxCrossEntropyLoss

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]
