"""Measures how fast language models write, natively, compared with llama.cpp.

python benchmarks/decode.py MODEL.gguf [--peer FILE.gguf ...] [--tokens 32] [--prompt 128] [--rounds 5] [--threads 1 2]

Needs the Python package of attn, numpy and, for the peer, llama-cpp-python. Contenders write the same number of tokens
after the same prompt, in turns, so that disturbances of the machine affect all of them. Prints for each the shortest
time to the first token, the tokens per second after it, and the share of the memory's speed: the bytes of the weights
per token over what a read-only pass over as many bytes takes on as many threads in the same round.
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import attn

TEXT = "The town lies between two rivers, and in spring both of them rise. "


def stream_seconds(size, threads):
    """Seconds of a read-only pass over `size` bytes; the best of three."""
    parts = [np.ones(size // 8 // threads, np.int64) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            list(pool.map(np.max, parts))  # of numpy's reductions the one that reads fastest
            times.append(time.perf_counter() - start)
    return min(times)


class Attn:
    def __init__(self, path, weights):
        self.name = f"attn {weights}"
        self.model = attn.TextModel.load(path, weights=weights)
        # Biases and norms are small and stay float32.
        numbers = sum(value.size for name, value in self.model.state_dict().items() if value.ndim > 1)
        self.bytes = numbers * (1 if weights == "int8" else 4)

    def write(self, prompt, tokens, threads):
        attn.set_num_threads(threads)
        times = []
        start = time.perf_counter()
        self.model.generate(prompt, max_new_tokens=tokens, on_token=lambda token: times.append(time.perf_counter()))
        attn.set_num_threads(1)  # idle threads would disturb the next contender
        return times[0] - start, times


class LlamaCpp:
    def __init__(self, path, threads):
        import llama_cpp

        self.name = f"llama.cpp {os.path.basename(path)}"
        self.bytes = os.path.getsize(path)
        self.llama = llama_cpp.Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)

    def write(self, prompt, tokens, threads):
        self.llama.reset()
        times = []
        start = time.perf_counter()
        for _ in self.llama.generate(self.llama.tokenize(prompt.encode()), temp=0.0):
            times.append(time.perf_counter())
            if len(times) == tokens:
                break
        return times[0] - start, times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--peer", action="append", default=[], help="a .gguf file for llama.cpp")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=128, help="about this many tokens of prompt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    prompt = TEXT * max(1, options.prompt // 16)
    ours = [Attn(options.model, "float32"), Attn(options.model, "int8")]
    print(f"{ours[0].model.tokenize([prompt]).input_ids.shape[1]} tokens of prompt, {options.tokens} new ones")
    for threads in options.threads:
        contenders = ours + [LlamaCpp(path, threads) for path in options.peer]
        firsts, steps, shares = ({each.name: [] for each in contenders} for _ in range(3))
        for _ in range(options.rounds):
            for each in contenders:
                streamed = stream_seconds(each.bytes, threads)
                first, times = each.write(prompt, options.tokens, threads)
                step = (times[-1] - times[0]) / (len(times) - 1)
                firsts[each.name].append(first)
                steps[each.name].append(step)
                shares[each.name].append(streamed / step)
        for each in contenders:
            step = min(steps[each.name])
            print(
                f"{threads} threads  {each.name:40} first {1e3 * min(firsts[each.name]):7.1f} ms  {1 / step:6.1f} tokens/s  "
                f"{max(shares[each.name]):4.0%} of the stream"
            )


if __name__ == "__main__":
    main()
