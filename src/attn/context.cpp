#include "attn/context.hpp"

#include "attn/kernels/dispatch.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/parallel/lists.hpp"
#include "attn/parallel/tasks.hpp"
#include "attn/parallel/threads.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {

static_assert(kMaxThreads == parallel::Tasks::kMostWorkers);

struct Context::State {
  struct OwnThreads : parallel::Threads {
    ~OwnThreads() {
      close();
      parallel::forget_forks(*this);
    }
  };

  explicit State(const ContextOptions& asked) : options(asked) {
    if (options.executor)
      threads.use(*options.executor);
    else if (options.num_threads)
      threads.resize(*options.num_threads);
  }

  const ContextOptions options;
  OwnThreads threads;
};

Context::Context(const ContextOptions& options) {
  kernels::available("Context");
  if (options.executor && options.num_threads)
    detail::fail(ErrorCode::config, "Context", "num_threads", {"no value"}, {*options.num_threads}, "An executor has its own threads");
  state_ = std::make_shared<State>(options);
}

unsigned Context::num_threads() const {
  const Scope scope(*this);
  return attn::num_threads();
}

std::uint64_t Context::memory_limit() const {
  const Scope scope(*this);
  return attn::memory_limit();
}

Context::Scope::Scope(const Context& context)
    : state_(context.state_),
      threads_before_(parallel::Threads::set_current(state_->options.executor || state_->options.num_threads ? &state_->threads : nullptr)),
      memory_limit_before_(detail::put_memory_limit_in_force(state_->options.memory_limit ? &*state_->options.memory_limit : nullptr)) {}

Context::Scope::~Scope() {
  parallel::Threads::set_current(threads_before_);
  detail::put_memory_limit_in_force(memory_limit_before_);
}

std::string_view Context::arch() { return kernels::chosen("arch").architecture; }

std::string_view Context::int8() { return kernels::chosen("int8").int8.name; }

std::vector<std::string_view> Context::archs() {
  std::vector<std::string_view> names;
  for (const kernels::KernelTable* const table : kernels::available("archs")) names.emplace_back(table->architecture);
  return names;
}

void Context::pin_arch(std::string_view name) { kernels::pin("pin_arch", name); }

void Context::release_memory() { detail::Workspace::release_all(); }

}  // namespace attn
