"""The memory that torch_sdpa claims per request, measured in processes of their own."""

import subprocess
import sys

import pytest

from attnhub_backends.torch_sdpa import CPU

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read from /proc"),
]

LENGTH = 6144
#: One (T, S) array of float32, in MiB; a quadratic call makes at least a boolean one and this.
ONE_SQUARE = LENGTH * LENGTH * 4 / 2**20

SCRIPT = """
import sys, torch, attnhub
torch.set_num_threads(1)
length, backward, words = int(sys.argv[1]), sys.argv[2] == "backward", sys.argv[3]

def arguments(length):
    heads = 2
    x = {"query": torch.randn(1, length, heads, 16), "key": torch.randn(1, length, heads, 16),
         "value": torch.randn(1, length, heads, 16)}
    if words == "grouped": x["key"], x["value"] = x["key"][:, :, :1], x["value"][:, :, :1]
    if words == "value_head_dim": x["value"] = torch.randn(1, length, heads, 8)
    if words == "half": x = {name: array.bfloat16() for name, array in x.items()}
    if words == "highest": x["precision"] = "highest"
    if words == "lengths": x["key_value_seq_lengths"] = torch.tensor([length - 3])
    if words == "causal": x["is_causal"] = True
    if words == "window": x["local_window_size"] = (64, 64)
    return x

def call(length):
    x = arguments(length)
    if backward:
        for name in ("query", "key", "value"): x[name] = x[name].requires_grad_()
    out = attnhub.get("cpu", backend="torch_sdpa")(**x)
    if backward: out.sum().backward()

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

call(64)
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")  # the peak so far, which importing torch may have made, counts no more
before = peak()
call(length)
print((peak() - before) / 1024)
"""


def grown(words, direction):
    """Return by how many MiB the process grew for one long call."""
    command = [sys.executable, "-c", SCRIPT, str(LENGTH), direction, words]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("words", ["plain", "causal", "lengths", "grouped", "value_head_dim", "half", "highest"])
def test_what_is_claimed_linear_makes_no_array_of_t_by_s(words, direction):
    assert grown(words, direction) < ONE_SQUARE / 2


def test_what_is_claimed_quadratic_is_so_that_the_measure_can_fail():
    assert CPU.memory("float32", ("local_window_size",)) == "quadratic"
    assert grown("window", "forward") > ONE_SQUARE / 2
