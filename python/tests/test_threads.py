"""Tests threads of attn and Python, processes, and Ctrl-C."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import attn
import numpy
import pytest

from golden import testdata

sentiment_folder = testdata / "models" / "sentiment"
texts = [f"a {word} film" for word in ("good", "bad", "dull", "wonderful")] * 20


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")


def run_python(program: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, **options)


def test_the_number_of_threads() -> None:
    assert attn.get_num_threads() == 1
    try:
        attn.set_num_threads(3)
        assert attn.get_num_threads() == 3
        attn.set_num_threads(0)
        assert attn.get_num_threads() == os.cpu_count()
    finally:
        attn.set_num_threads(1)
    with pytest.raises(TypeError):
        attn.set_num_threads(-1)


@pytest.mark.parametrize("count", [4096, 2**31, 2**32 - 1])
def test_more_threads_than_there_may_be_are_refused(count: int) -> None:
    x = numpy.ones((2, 3), numpy.float32)
    with pytest.raises(attn.ConfigError, match=f"count is {count}, expected a number from 0 to 4095"):
        attn.set_num_threads(count)
    with pytest.raises(attn.ConfigError, match="4095"):
        attn.softmax(x, threads=count)
    assert attn.get_num_threads() == 1
    assert attn.softmax(x).shape == (2, 3)


@linux
def test_counts_of_threads_that_are_no_longer_used_keep_none() -> None:
    program = """
import os
import attn
import numpy
x = numpy.ones((2, 3), numpy.float32)
before = len(os.listdir("/proc/self/task"))
for count in range(2, 13):
    attn.softmax(x, threads=count)
# Only the last four counts may remain.
assert len(os.listdir("/proc/self/task")) - before <= 8 + 9 + 10 + 11, len(os.listdir("/proc/self/task")) - before
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_while_an_error_is_made_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attn._errors.make_error", interrupted)
    with pytest.raises(KeyboardInterrupt):
        attn.TextModel.load("nowhere")


@linux
def test_threads_start_when_they_are_used() -> None:
    program = f"""
import os
import numpy
count = lambda: len(os.listdir("/proc/self/task"))
x = numpy.ones((64, 128, 64), numpy.float32)
before = count()
import attn
attn.set_num_threads(3)
model = attn.TextModel.load({str(sentiment_folder)!r}, threads=1)
assert count() == before, "before any call"
attn.scaled_dot_product_attention(x, x, x)
assert count() == before + 2, "of the process"
attn.scaled_dot_product_attention(x, x, x, threads=2)
assert count() == before + 3, "of a call"
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


@linux
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_child_of_fork_computes_with_its_parents_model(threads: int) -> None:
    model = attn.TextModel.load(sentiment_folder, threads=threads)
    expected = model.embed(texts)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        right = numpy.array_equal(model.embed(texts), expected) and count_threads() == threads
        os.write(write, b"y" if right else b"n")
        os._exit(0)
    os.close(write)
    assert os.read(read, 1) == b"y"
    assert os.waitpid(child, 0)[1] == 0
    assert numpy.array_equal(model.embed(texts), expected)


def worker(queue: "multiprocessing.Queue[object]") -> None:
    model = attn.TextModel.load(sentiment_folder, threads=2)
    queue.put(model.embed(texts))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_multiprocessing_gives_the_same(method: str) -> None:
    model = attn.TextModel.load(sentiment_folder, threads=2)
    expected = model.embed(texts)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=worker, args=(queue,))
    process.start()
    assert numpy.array_equal(queue.get(timeout=60), expected)
    process.join(10)
    assert process.exitcode == 0


def test_many_threads_of_pythons_call_at_once(threads: int) -> None:
    model = attn.TextModel.load(sentiment_folder, threads=threads)
    encoding = model.tokenize(texts[:5])
    expected, attentions = model.embed(texts), model(encoding, output_attentions=True).attentions

    def call(i: int) -> bool:
        if i % 3 == 0:
            got = model(encoding, output_attentions=True).attentions
            return all(numpy.array_equal(one, other) for one, other in zip(got, attentions, strict=True))
        return numpy.array_equal(model.embed(texts), expected)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(48)))


def test_weights_do_not_change_inside_a_call() -> None:
    model = attn.TextModel.load(testdata / "models" / "tiny-bert")
    states = [model.state_dict()]
    states.append({name: array * 2 for name, array in states[0].items()})
    valid = []
    for state in states:
        model.load_state_dict(state)
        valid.append(model.embed(texts))
    ended = threading.Event()

    def change() -> None:
        i = 0
        while not ended.is_set():
            model.load_state_dict(states[i % 2])
            i += 1

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(50):
            got = model.embed(texts)
            assert any(numpy.array_equal(got, one) for one in valid)
    finally:
        ended.set()
        changing.join()


def test_other_threads_of_pythons_run_meanwhile() -> None:
    x = numpy.ones((64, 512, 64), numpy.float32)
    ticks, ended = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not ended.is_set():
            ticks += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    before, began = ticks, time.monotonic()
    attn.scaled_dot_product_attention(x, x, x)
    seen, took = ticks - before, time.monotonic() - began
    ended.set()
    ticking.join()
    # With the interpreter's lock held there would be at most two, however long it takes.
    assert took > 0.02
    assert seen > 4


@pytest.mark.parametrize("call", ["model.embed(texts)", "model.classify(texts)", "model.fine_tune([(text, 1) for text in texts])"])
def test_ctrl_c_ends_a_long_call(call: str) -> None:
    program = f"""
import signal, sys, time
import attn
signal.signal(signal.SIGINT, signal.default_int_handler)
model = attn.TextModel.load({str(sentiment_folder)!r})
texts = ["a good film"] * 1_000_000
print("begun", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("ended", flush=True)
assert model.embed("a").shape == (1, 64)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert child.stdout.readline() == "ended\n"
        assert time.monotonic() - began < 20
        assert child.wait(20) == 0


def test_the_interpreter_ends_beside_a_call() -> None:
    program = f"""
import threading, time
import attn
model = attn.TextModel.load({str(sentiment_folder)!r}, threads=2)
threading.Thread(target=lambda: model.embed(["a good film"] * 1_000_000), daemon=True).start()
time.sleep(0.2)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr
