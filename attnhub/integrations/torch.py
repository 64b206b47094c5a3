"""PyTorch: whether a call is being traced."""

from __future__ import annotations


def is_compiling() -> bool:
    """Tell whether `torch.compile` or `torch.export` traces this; dynamo takes the answer for a constant.

    The import is what dynamo traces best: looked up in `sys.modules`, it would take in every module there is.
    """
    import torch

    return torch.compiler.is_compiling()
