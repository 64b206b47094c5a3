"""What the tests of `attnhub check` share: wrong subjects, and the command run as a process."""

import subprocess
import sys
from pathlib import Path

#: The body of a plugin's hook: a backend that is off by a hundredth.
WRONG_BACKEND = """
def load():
    from attnhub_contracts.conformance import oracle
    def prepare(request):
        return lambda arrays: oracle.attend(*arrays[:3], layout=request.layout) * 1.01
    return prepare
words = 'hidden_overflow nan_propagation grouped_heads unequal_lengths value_head_dim'
return [make('acme_flash', claim(words), attend=load)]
"""

#: A module of functions that are wrong in one way each, in NumPy and in PyTorch's convention.
WRONG_FUNCTIONS = """
import numpy as np
from attnhub_contracts import UnsupportedError
from attnhub_contracts.conformance import oracle

def too_large(query, key, value, **more):
    out = oracle.attend(query, key, value, **{**more, "return_lse": False})
    return (out * 1.01).astype(query.dtype)

def raising(*arguments, **more):
    raise ValueError("\\x1b[31m no </script><b> \\ud800 such \\u2028 kernel")

def refusing(*arguments, **more):
    raise UnsupportedError("none is served", feature="bias")

def without_scale(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    from torch.nn.functional import scaled_dot_product_attention
    return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa=enable_gqa)

class Kernels:
    too_large = staticmethod(too_large)

ready = 1
"""

COMMAND = (sys.executable, "-c", "from attnhub.cli import main; main()")


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what somebody pasted into a file of the folder."""
    path = folder / "pasted.py"
    path.write_text(text)
    return subprocess.run([sys.executable, path], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
