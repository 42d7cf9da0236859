#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/parallel/executor.hpp"

namespace attn {
namespace parallel {
class Threads;
}

/// That the process or a context may have, the calling thread included.
inline constexpr unsigned kMaxThreads = 4095;

/// What is left out is the process's: set_num_threads(), set_memory_limit().
struct ContextOptions {
  /// Threads that the context starts for itself, the calling one included; 0: one per core.
  std::optional<unsigned> num_threads = std::nullopt;
  /// Instead of them: the caller's.
  std::shared_ptr<Executor> executor = nullptr;
  /// Bytes that one call may ask for; requests above are MEMORY.
  std::optional<std::uint64_t> memory_limit = std::nullopt;
};

/// Threads and a memory limit for calls, instead of those of the process. They do not change any bit of a result.
/// Copies are the same context, which lives as long as a copy or a Scope does. Several threads may use one context at
/// once: an executor then works for all of them; of a context's own threads one call has all and the others have
/// none. After fork() a child's contexts have as many threads as the parent's, started when there is work.
/// @code
/// attn::Context context({.num_threads = 1, .memory_limit = 1 << 20});
/// attn::Context::Scope scope(context);
/// std::cout << context.num_threads();  // 1
/// @endcode
class Context {
  struct State;

 public:
  /// Creates a context. It also passes on std::system_error if the system has no more threads, and what workers()
  /// throws.
  ///
  /// @throws CONFIG if both an executor and a number of threads are given, for more than kMaxThreads, or if
  /// ATTN_MAX_ARCH in the environment names no architecture
  explicit Context(const ContextOptions& options = {});

  unsigned num_threads() const;
  std::uint64_t memory_limit() const;

  /// While it lives, the calls of the thread that made it run with the context. Of several the innermost is in force,
  /// as a whole.
  class Scope {
   public:
    explicit Scope(const Context& context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<State> state_;
    parallel::Threads* threads_before_;
    const std::uint64_t* memory_limit_before_;
  };

  /// Returns the name of the kernels that the process uses: "sse4_2", "avx2_fma", "avx_vnni", "avx512f" or
  /// "avx512_vnni"; on arm64 "default_arch" or "neon_dotprod"; elsewhere "default_arch". It is the widest of archs()
  /// unless one is pinned. Names that end in vnni or dotprod differ from their base only in int8 products. The order
  /// of packed weights depends on it, so it is one for the whole process, and final after the first use.
  ///
  /// @throws CONFIG if ATTN_MAX_ARCH in the environment names no architecture
  static std::string_view arch();
  /// Returns the architectures that are available, the narrowest first: in the library, supported by the machine, and
  /// not wider than ATTN_MAX_ARCH.
  static std::vector<std::string_view> archs();
  /// Selects the kernels of the process.
  ///
  /// @throws CONFIG if archs() does not list the name, or another one is in use
  static void pin_arch(std::string_view name);

  /// Returns how arch() multiplies int8 weights: "16-bit pairs", or the instruction for four 8-bit numbers
  /// ("vpdpbusd", "sdot"). The results have the same bits.
  static std::string_view int8();

  /// Frees the memory that layers keep for their next forward, of all layers in the process. A running forward frees
  /// its memory at its end. May be called at any time.
  static void release_memory();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace attn
