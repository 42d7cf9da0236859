"""Threads, processes, and Ctrl-C."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
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


def run_python(program: str, seconds: int = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds, check=False)


def test_set_num_threads_sets_the_number_of_threads() -> None:
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
def test_too_many_threads_raise(count: int) -> None:
    x = numpy.ones((2, 3), numpy.float32)
    with pytest.raises(attn.ConfigError, match=f"count is {count}, expected a number from 0 to 4095"):
        attn.set_num_threads(count)
    with pytest.raises(attn.ConfigError, match="4095"):
        attn.softmax(x, threads=count)
    assert attn.get_num_threads() == 1
    assert attn.softmax(x).shape == (2, 3)


@linux
def test_only_recent_thread_counts_keep_their_threads() -> None:
    program = """
import os
import attn
import numpy
x = numpy.ones((2, 3), numpy.float32)
before = len(os.listdir("/proc/self/task"))
for count in range(2, 13):
    attn.softmax(x, threads=count)
# Only the last four counts keep threads.
assert len(os.listdir("/proc/self/task")) - before <= 8 + 9 + 10 + 11, len(os.listdir("/proc/self/task")) - before
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_while_an_error_is_created_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attn._errors.make_error", interrupted)
    with pytest.raises(KeyboardInterrupt):
        attn.TextModel.load("./nowhere")


@linux
def test_threads_start_with_the_first_computation() -> None:
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


# A position table computed in the first call; a decoder; different tokenizers.
fork_models = pytest.mark.parametrize("name", ["sentiment", "tiny-deberta", "tiny-gpt2"])


@linux
@fork_models
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_child_of_fork_computes_with_the_model_of_its_parent(name: str, threads: int) -> None:
    model = attn.TextModel.load(testdata / "models" / name, threads=threads)
    expected = model.embed(texts)
    assert wait_for(fork(lambda: numpy.array_equal(model.embed(texts), expected) and count_threads() == threads))
    assert numpy.array_equal(model.embed(texts), expected)


def wait_for(child: int) -> bool:
    """Whether a child ended well within a minute; else it hangs and is killed."""
    for _ in range(6000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended == child:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def fork(in_child: Callable[[], bool]) -> int:
    child = os.fork()
    if child == 0:
        right = False
        try:
            right = in_child()
        finally:
            os._exit(0 if right else 1)
    return child


@linux
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_child_can_change_an_object_that_a_parent_thread_was_changing() -> None:
    model = attn.TextModel.load(testdata / "models" / "tiny-bert")
    states = [model.state_dict()]
    states.append({name: array * 2 for name, array in states[0].items()})
    ended = threading.Event()

    def change() -> None:
        for i in itertools.cycle(range(2)):
            if ended.is_set():
                return
            model.load_state_dict(states[i])

    def in_child() -> bool:
        got = model.state_dict()
        whole = any(all(numpy.array_equal(array, state[name]) for name, array in got.items()) for state in states)
        model.load_state_dict(states[0])
        return whole

    changing = threading.Thread(target=change)
    changing.start()
    try:
        assert all(wait_for(fork(in_child)) for _ in range(20))
    finally:
        ended.set()
        changing.join()


@linux
@fork_models
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_child_can_read_what_a_parent_thread_reads_and_not_what_it_trains(name: str) -> None:
    read, trained = (attn.TextModel.load(testdata / "models" / each) for each in (name, "tiny-bert"))
    expected = read.embed("a")
    inside, children = [threading.Event(), threading.Event()], threading.Event()

    def pause(i: int) -> None:
        inside[i].set()
        children.wait()

    def in_child() -> bool:
        try:
            trained.embed("a")
        except attn.BusyError as error:
            refused = error.help is not None
        read.load_state_dict(read.state_dict())
        return refused and numpy.array_equal(read.embed("a"), expected)

    threads = [
        threading.Thread(target=lambda: read.embed(["a"] * 64, batch_size=32, on_progress=lambda *_: pause(0))),
        threading.Thread(target=lambda: trained.fine_tune([("a", 0)] * 4, epochs=1, on_progress=lambda _: pause(1))),
    ]
    for thread in threads:
        thread.start()
    for each in inside:
        each.wait()
    try:
        assert wait_for(fork(in_child))
    finally:
        children.set()
        for thread in threads:
            thread.join()
    assert trained.embed("a").shape == (1, 32)


@linux
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_callback_may_fork() -> None:
    model = attn.TextModel.load(testdata / "models" / "tiny-bert")
    ended = []

    def progress(*_: object) -> None:
        ended.append(wait_for(fork(lambda: model.embed("a").shape == (1, 32))))

    model.embed(["a"] * 3, batch_size=1, on_progress=progress)
    assert ended == [True] * 3


@linux
@fork_models
def test_a_fork_during_the_first_call_does_not_hang_the_child(name: str) -> None:
    program = f"""
import os, signal, threading
import attn
folder = {str(testdata / "models" / name)!r}
model = attn.TextModel.load(folder, threads=2)
started = threading.Event()
def first_call():
    started.set()
    attn.TextModel.load(folder).tokenize("a film")
    model.embed(["a film"] * 80)
thread = threading.Thread(target=first_call)
thread.start()
started.wait()
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        attn.TextModel.load(folder).tokenize("a film")
        model.embed(["a film"] * 80)
        os._exit(0)
    children.append(child)
thread.join()
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""
    for _ in range(5):
        done = run_python(program, 180)
        assert done.returncode == 0, done.stderr


def worker(queue: "multiprocessing.Queue[object]") -> None:
    model = attn.TextModel.load(sentiment_folder, threads=2)
    queue.put(model.embed(texts))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_multiprocessing_gives_the_same_vectors(method: str) -> None:
    model = attn.TextModel.load(sentiment_folder, threads=2)
    expected = model.embed(texts)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=worker, args=(queue,))
    process.start()
    assert numpy.array_equal(queue.get(timeout=60), expected)
    process.join(10)
    assert process.exitcode == 0


def test_many_python_threads_call_one_model(threads: int) -> None:
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


def test_weights_do_not_change_during_a_call() -> None:
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


def test_other_python_threads_run_during_a_call() -> None:
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
    # One or two if the GIL were held.
    assert took > 0.02
    assert seen > 4


LONG_CALLS = [
    "model.embed(texts)",
    "model(np.full((20_000, 64), 7))",
    "model.classify(texts)",
    "model.tokenize(texts)",
    "model.embed([texts[0] * 100] * 50_000, batch_size=4096)",
    "model.fine_tune([(text, 1) for text in texts])",
    "model.fine_tune([(texts[0] * 40, 1)] * 8192, batch_size=1024)",
    "model.attribute(texts[0] * 40, steps=2000)",
    "attn.TransformerEncoder(512, 8, 6)(np.zeros((8, 2048, 512), np.float32))",
    "attn.scaled_dot_product_attention(*np.zeros((3, 1, 16, 16384, 64), np.float32))",
    "attn.linear(np.zeros((20_000, 4096), np.float32), np.zeros((2048, 4096), np.float32))",
]


@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_ends_a_long_call(call: str) -> None:
    """It takes 0.1 s on an idle machine; the limit is that of a busy one."""
    program = f"""
import signal, sys, time
import attn
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
model = attn.TextModel.load({str(sentiment_folder)!r})
texts = ["a good film "] * 1_000_000
print("begun", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("ended", flush=True)
assert model.embed("a").shape == (1, 64)
assert model.fine_tune([("a good film", 1)] * 4, epochs=1).loss > 0
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert child.stdout.readline() == "ended\n"
        took = time.monotonic() - began
        assert took < 3, took
        assert child.wait(20) == 0


def test_ctrl_c_during_a_step_leaves_the_weights_of_the_last_complete_step() -> None:
    program = f"""
import os, signal, threading, time
import attn
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
examples = [("a good film " * 40, 1)] * 1024
model, other = (attn.TextModel.load({str(sentiment_folder)!r}) for _ in range(2))
before = model.state_dict()
threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model.fine_tune(examples, batch_size=1024)
    raise SystemExit("the step was too short")
except KeyboardInterrupt:
    pass
assert all(np.array_equal(array, before[name]) for name, array in model.state_dict().items())
few = [("a good film", 1), ("a dull film", 0)] * 4
assert model.fine_tune(few, epochs=1) == other.fine_tune(few, epochs=1)
assert all(np.array_equal(array, model.state_dict()[name]) for name, array in other.state_dict().items())
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_a_signal_handler_may_compute_and_fork_during_a_call() -> None:
    program = f"""
import os, signal, threading
import attn
import numpy as np
model = attn.TextModel.load({str(sentiment_folder)!r})
expected = model.embed("a")
seen = []
def handler(*_):
    seen.append(np.array_equal(model.embed("a"), expected))
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(model.embed("a"), expected) else 1)
    seen.append(os.waitpid(child, 0)[1] == 0)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
x = np.ones((1, 8, 8192, 64), np.float32)
output = attn.scaled_dot_product_attention(x, x, x).output
assert seen == [True, True], seen
assert np.allclose(output, 1)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_the_interpreter_can_end_during_a_call() -> None:
    program = f"""
import threading, time
import attn
model = attn.TextModel.load({str(sentiment_folder)!r}, threads=2)
threading.Thread(target=lambda: model.embed(["a good film"] * 1_000_000), daemon=True).start()
time.sleep(0.2)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr
