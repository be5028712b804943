"""ONNX import and export: `export_model`, `import_model`, `import_to_gluon`, `get_model_metadata`.

Needs the package `onnx` (`pip install dualmx[onnx]`), imported on first use. `OPERATORS` lists what can be exported,
`NODES` what can be imported; any other operator is an error that names it.
"""

from .export_model import export_model
from .export_rules import OPERATORS
from .import_model import get_model_metadata, import_model, import_to_gluon
from .import_rules import NODES

__all__ = ["NODES", "OPERATORS", "export_model", "get_model_metadata", "import_model", "import_to_gluon"]
