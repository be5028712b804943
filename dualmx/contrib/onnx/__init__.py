"""Networks to and from ONNX files: `export_model`, `import_model`, `import_to_gluon`, `get_model_metadata`.

Needs the package `onnx` (`pip install dualmx[onnx]`), which is imported when a function is called. `OPERATORS` lists
what can be exported, `NODES` what can be imported; another operator is an error that names it.
"""

from __future__ import annotations

from .export import export_model
from .from_onnx import NODES
from .reading import get_model_metadata, import_model, import_to_gluon
from .to_onnx import OPERATORS

__all__ = ["NODES", "OPERATORS", "export_model", "get_model_metadata", "import_model", "import_to_gluon"]
