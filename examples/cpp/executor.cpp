// Attention on a program's own threads: an executor has two functions, so any scheduler's parallel loop or queue can
// implement it.
#include <attn/attn.hpp>
#include <cstdio>
#include <thread>
#include <vector>

/// Starts new threads for each run. With OpenMP run() is `#pragma omp parallel num_threads(count)` before `work();`,
/// with TBB `tbb::parallel_for(0U, count, [&](unsigned) { work(); })`; a queue takes count - 1 copies of the work
/// without waiting for them.
class NewThreads : public attn::Executor {
 public:
  unsigned workers() const override { return 4; }
  void run(unsigned count, const Work& work) override {
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    ++runs;
  }
  int runs = 0;
};

int main() {
  const attn::TransformerEncoder encoder({.layer = {.d_model = 64, .nhead = 4, .dim_feedforward = 128}, .num_layers = 2});
  const xt::xtensor<float, 3> x = xt::ones<float>({1, 100, 64});
  const auto alone = encoder.forward(x).output;

  const auto executor = std::make_shared<NewThreads>();
  const attn::Context context({.executor = executor, .memory_limit = 1 << 24});
  {
    const attn::Context::Scope scope(context);  // applies to all calls of this thread from here on
    const auto shared = encoder.forward(x).output;
    std::printf("%u threads, the executor was asked: %s, the same output: %s\n", attn::num_threads(), executor->runs > 0 ? "yes" : "no",
                shared == alone ? "yes" : "no");
    try {
      encoder.forward(xt::xtensor<float, 3>(xt::ones<float>({400, 100, 64})));
    } catch (const attn::Error& error) {
      std::printf("400 of them: %s\n", attn::to_string(error.code()).data());
    }
  }
  std::printf("outside: %u thread\n", attn::num_threads());
  attn::Context::release_memory();  // memory that layers retain for their next forward
}
