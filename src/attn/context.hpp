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

/// What calls run with, instead of what the process has: threads and a memory limit. It changes no bit of a result. Copies are the same
/// context, which lives as long as one of them or a Scope. Several threads may use one at once: an executor then works for all of
/// them, of a context's own threads one call has all and the others none.
/// After fork() a child's contexts have as many threads as the parent's, started when there is work for them.
class Context {
  struct State;

 public:
  /// Throws CONFIG for an executor beside a number of threads, for more than kMaxThreads, and where ATTN_MAX_ARCH in the environment names no
  /// architecture; std::system_error where the system has no more threads; what the executor's workers() throws.
  explicit Context(const ContextOptions& options = {});

  unsigned num_threads() const;
  std::uint64_t memory_limit() const;

  /// While it lives, the calls of the thread that made it run with the context. Of several the innermost is in force, as a whole.
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

  /// The kernels that the process uses: "sse4_2", "avx2_fma", "avx_vnni", "avx512f", "avx512_vnni"; on arm64 "default_arch", "neon_dotprod";
  /// elsewhere "default_arch". The widest of archs(), unless one is pinned. Those after another that end in vnni or dotprod are the same but
  /// for products of int8. Weights are kept in an order that depends on it, so it is one for the whole process, and final once anything has
  /// used it. These throw CONFIG where ATTN_MAX_ARCH in the environment names no architecture.
  static std::string_view arch();
  /// Those that can be had here, the narrowest first: in the library, known to the machine, no wider than ATTN_MAX_ARCH.
  static std::vector<std::string_view> archs();
  /// Throws CONFIG for one that is not among archs(), and when another one has been used.
  static void pin_arch(std::string_view name);

  /// How products of int8 weights are made by arch(): "16-bit pairs", or by the instruction for four numbers of 8 bits, "vpdpbusd", "sdot".
  /// Whichever it is, the results have the same bits.
  static std::string_view int8();

  /// Frees what layers keep for their next forward, of all layers in the process; they take it anew when they need it. What a forward is
  /// using goes at its end. May be called at any time.
  static void release_memory();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace attn
