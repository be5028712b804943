"""oneDNN is called so that no process dies of it: memory of the right thread, kernels that stay within their arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dualmx.compile.cpu.onednn import bindings, build, ffi_handlers, primitives
from tests.compile import guard_pages

pytestmark = pytest.mark.skipif(not ffi_handlers.available(), reason=f"left to XLA: {ffi_handlers.unavailable()}")

_COMPUTE = """
import sys, threading
from pathlib import Path
from dualmx.compile.cpu.onednn import primitives
from tests.compile.guard_pages import computing, wrong

c, compute = primitives.ConvSpec.parse(sys.argv[1]), computing(Path(sys.argv[2]))
found = [wrong(compute, c, 0, end) for end in (True, False)]
"""
_IN_ANOTHER_THREAD = """
other = threading.Thread(target=lambda: found.append(wrong(compute, c, 1, True)))
other.start()
other.join()
found += [] if len(found) == 3 else ["no result"]
"""
_VERDICT = "print([said for said in found if said])"

# The gradient of the filters of a transposed convolution with a kernel as large as its result, as where DCGAN begins.
_GENERATOR_FILTERS = "2;1;1;32,100,1,1;64,100,7,7;32,64,7,7;1,1;1,1;6,6;6,6;0,1,2,3"
# What is left to XLA: strided filters of one point and few channels; deep padding; wide steps with space between.
_POINTS = "2;1;0;1,4,28,3;1,4,1,1;1,1,14,1;2,3;1,1;0,0;0,0;2,3,1,0"
_DEPTH = "2;1;0;4,24,6,4,6;7,24,7,4,3;4,7,3,1,7;4,4,1;1,1,1;5,0,1;4,0,2;0,1,2,3,4"
_SPACED = "2;1;0;2,16,64;32,16,9;2,32,32;2;7;28;27;0,1,2"


def run(code, *arguments, **env):
    here = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=here, env={**os.environ, **env})


@pytest.mark.slow
def test_what_one_thread_prepared_another_one_computes():
    done = run(_COMPUTE + _IN_ANOTHER_THREAD + _VERDICT, _GENERATOR_FILTERS, build.target())
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.slow
def test_with_memory_of_the_library_another_thread_dies(tmp_path, monkeypatch):
    source = tmp_path / "handlers.c"
    source.write_text(build.SOURCE.read_text().replace("CALLER = 1 }", "CALLER = 0 }"))
    monkeypatch.setattr(build, "SOURCE", source)
    assert run(_COMPUTE + _IN_ANOTHER_THREAD + _VERDICT, _GENERATOR_FILTERS, build.build()).returncode == -11
    assert run(_COMPUTE + _VERDICT, _GENERATOR_FILTERS, build.target()).stdout == "[]\n"


_GRADIENTS = """
import numpy as np
from dualmx import autograd, nd

draw = np.random.RandomState(0)
for _ in range(30):
    z, w = nd.array(draw.randn(32, 100, 1, 1)), nd.array(draw.randn(100, 64, 7, 7))
    w.attach_grad()
    with autograd.record():
        y = nd.Deconvolution(z, w, kernel=(7, 7), num_filter=64, no_bias=True).sum()
    y.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), np.tile(z.sum(0).asnumpy()[:, None], (64, 7, 7)), 1e-4, 1e-4)
"""


def test_gradient_of_transposed_filters():
    done = run(_GRADIENTS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ThreadedEnginePerDevice", "NaiveEngine"])
def test_gradient_of_transposed_filters_in_many_processes(engine):
    for _ in range(5):
        done = run(_GRADIENTS, MXNET_ENGINE_TYPE=engine)
        assert done.returncode == 0, done.stderr


_GENERATOR = """
import sys
import numpy as np
import dualmx as mx
from dualmx.gluon import nn

mx.random.seed(0)
net = nn.HybridSequential()
for i, (channels, stride, pad) in enumerate([(128, 1, 0), (64, 2, 1), (32, 2, 1), (16, 2, 1)]):
    net.add(nn.Conv2DTranspose(channels, 4, stride, pad, use_bias=False, in_channels=2 * channels if i else 100))
    net.add(nn.BatchNorm(in_channels=channels), nn.Activation("relu"))
net.add(nn.Conv2DTranspose(3, 4, 2, 1, use_bias=False, in_channels=16), nn.Activation("tanh"))
net.initialize(mx.init.Normal(0.02))
if sys.argv[1] == "hybrid":
    net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.0002, "beta1": 0.5})
draw = np.random.RandomState(0)
for _ in range(10):
    z = mx.nd.array(draw.randn(16, 100, 1, 1))
    with mx.autograd.record():
        y = net(z)
        loss = ((y - 1) ** 2).mean()
    loss.backward()
    trainer.step(1)
    assert y.shape == (16, 3, 64, 64) and np.isfinite(loss.asscalar())
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["hybrid", "imperative"])
def test_generator_of_dcgan(form):
    done = run(_GENERATOR, form)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_program_that_ends_while_a_convolution_is_prepared():
    """XLA's threads need nothing of an interpreter that shuts down."""
    code = (
        "import jax, numpy as np\nfrom dualmx.compile.cpu.onednn import ffi_handlers, primitives\n"
        "ffi_handlers.available()\n"
        "for w in range(600, 606):\n"
        "    two = [(1, 1)] * 2 + [(0, 0)] * 2\n"
        "    c = primitives.ConvSpec(0, 1, (1, 3, w, w), (8, 3, 3, 3), (1, 8, w - 2, w - 2), *two, (0, 1, 2, 3))\n"
        "    call = jax.ffi.ffi_call(ffi_handlers.CONVOLUTION, jax.ShapeDtypeStruct((1, w - 2, w - 2, 8), 'f'))\n"
        "    jax.jit(lambda a, b: call(a, b, text=c.text()))(np.ones((1, w, w, 3), 'f'), np.ones((8, 3, 3, 3), 'f'))\n"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, timeout=120).returncode == 0


@pytest.mark.slow
def test_arrays_between_guard_pages():
    assert guard_pages.search(0, 60) == {}


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["DEFAULT", "AVX2"])
def test_many_arrays_between_guard_pages(isa, monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", isa)
    assert guard_pages.search(1000, 2000) == {}


@pytest.mark.slow
@pytest.mark.parametrize("text, isa", [(_POINTS, "AVX2"), (_DEPTH, "AVX512_CORE"), (_SPACED, "AVX512_CORE")])
def test_what_is_left_to_xla_is_wrong_or_reads_beyond_its_arrays(text, isa, tmp_path):
    if isa == "AVX512_CORE" and "avx512bw" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX-512")
    assert primitives.faulty(primitives.ConvSpec.parse(text))
    handlers = guard_pages.build_guarded(tmp_path)
    # With several threads one leaves its part of the scratch memory for another's, and which came first is chance.
    done = run(_COMPUTE + _VERDICT, text, handlers, ONEDNN_MAX_CPU_ISA=isa, OMP_NUM_THREADS="1")
    assert done.returncode == -11 or "wrong by" in done.stdout, done.stderr


def test_handlers_of_another_source_are_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "SOURCE", tmp_path / "handlers.c")
    build.SOURCE.write_text("int first;")
    first = build.build()
    build.SOURCE.write_text("int second;")
    with pytest.raises(OSError, match="was not built: python "):
        bindings.handlers()
    second = build.build()
    assert second != first and list(tmp_path.glob("*.so")) == [second]
    with pytest.raises(AttributeError, match="undefined symbol: dualmx_onednn_name"):
        bindings.handlers()


@pytest.mark.slow
def test_without_handlers_xla_computes():
    code = (
        "from pathlib import Path\nfrom dualmx.compile.cpu.onednn import build, ffi_handlers\n"
        "build.target = lambda: Path('/nowhere/handlers.so')\nimport dualmx as mx\n"
        "y = mx.nd.Convolution(mx.nd.ones((4, 16, 20, 20)), mx.nd.ones((32, 16, 3, 3)), kernel=(3, 3), "
        "num_filter=32, no_bias=True)\nprint((y == 144).asnumpy().all(), ffi_handlers.unavailable())"
    )
    done = run(code)
    assert done.stdout.startswith("True handlers.so was not built: python "), done.stderr


def test_an_interface_of_xla_that_the_handlers_do_not_know(monkeypatch):
    monkeypatch.setattr(bindings, "_interface", lambda: (1, 0))
    with pytest.raises(OSError, match="XLA's interface"):
        bindings.handlers()


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(FileNotFoundError, match="no C compiler: 'no-such-compiler -m64'"):
        build.build(tmp_path)
