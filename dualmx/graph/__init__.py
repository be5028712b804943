"""The graph: values, nodes and linear programs, and the passes over them."""
