"""Operator definitions by theme; importing this package fills the registry."""

from . import (  # noqa: F401
    attention,
    binary,
    conv,
    creation,
    dense,
    detection,
    elementwise,
    image,
    index,
    legacy_gradients,
    linalg,
    loss,
    norm,
    optimizer,
    pdf,
    pool,
    quantized,
    random,
    reduce,
    rnn,
    roi,
    search,
    sequence,
    shape,
    signal,
    sparse,
)

sparse.register_aliases()
