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

/// Maximum number of threads of the process or of a context, including the calling thread.
inline constexpr unsigned kMaxThreads = 4095;

/// Options for a Context. Omitted ones are taken from the process: set_num_threads(), set_memory_limit().
struct ContextOptions {
  /// Number of threads, including the calling one. 0: one per core.
  std::optional<unsigned> num_threads = std::nullopt;
  /// Executor that provides the threads. Cannot be combined with num_threads.
  std::shared_ptr<Executor> executor = nullptr;
  /// Maximum number of bytes per call. A call that needs more throws MEMORY.
  std::optional<std::uint64_t> memory_limit = std::nullopt;
};

/// Replaces the threads and the memory limit of the process for some calls. Results have the same bits in every
/// context. Copies share one context, which lives as long as a copy or a Scope. Several threads may use one context at
/// the same time: an executor then works for all of them, whereas the context's own threads work for one call and the
/// other calls run on their calling threads alone. After fork(), the child's contexts have as many threads as the
/// parent's; they start when there is work.
/// @code
/// attn::Context context({.num_threads = 1, .memory_limit = 1 << 20});
/// attn::Context::Scope scope(context);
/// std::cout << context.num_threads();  // 1
/// @endcode
class Context {
  struct State;

 public:
  /// Creates a context. Also throws std::system_error if the system cannot start the threads, and any exception of the
  /// executor's workers().
  ///
  /// @throws CONFIG if both an executor and a number of threads are given, if num_threads exceeds kMaxThreads, or if
  /// ATTN_MAX_ARCH in the environment is not the name of an architecture
  explicit Context(const ContextOptions& options = {});

  /// Returns the number of threads that a call uses, including the calling one.
  /// @code
  /// attn::Context context({.num_threads = 2});
  /// std::cout << context.num_threads();  // 2
  /// @endcode
  unsigned num_threads() const;
  /// Returns the maximum number of bytes per call.
  /// @code
  /// attn::Context context({.memory_limit = 1 << 20});
  /// std::cout << context.memory_limit();  // 1048576
  /// @endcode
  std::uint64_t memory_limit() const;

  /// Makes the calls of the current thread use the context during the lifetime of the scope. Of nested scopes only the
  /// innermost applies; its context replaces the outer one completely.
  /// @code
  /// attn::Context context({.memory_limit = 1000});
  /// try {
  ///   attn::Context::Scope scope(context);
  ///   attn::sinusoidal_positions(1000, 1000);
  /// } catch (const attn::Error& error) {
  ///   std::cout << to_string(error.code());  // MEMORY
  /// }
  /// @endcode
  class Scope {
   public:
    /// Puts the context in force; the destructor restores the previous one.
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
  /// unless pin_arch() selects another one. Names that end in vnni or dotprod differ from their base only in int8
  /// products. The layout of packed weights depends on the architecture, so the whole process uses the same one, and it
  /// is final after the first use.
  ///
  /// @throws CONFIG if ATTN_MAX_ARCH in the environment is not the name of an architecture
  ///
  /// @code
  /// const auto archs = attn::Context::archs();
  /// std::cout << (std::count(archs.begin(), archs.end(), attn::Context::arch()) == 1);  // 1
  /// @endcode
  static std::string_view arch();
  /// Returns the available architectures, narrowest first: those in the library that the machine supports and that are
  /// not wider than ATTN_MAX_ARCH.
  /// @code
  /// std::cout << (attn::Context::archs().back() == attn::Context::arch());  // 1
  /// @endcode
  static std::vector<std::string_view> archs();
  /// Selects the kernels of the process.
  ///
  /// @throws CONFIG if archs() does not contain the name, or if another architecture is already in use
  ///
  /// @code
  /// attn::Context::pin_arch(attn::Context::archs().back());
  /// std::cout << (attn::Context::arch() == attn::Context::archs().back());  // 1
  /// @endcode
  static void pin_arch(std::string_view name);

  /// Returns how arch() multiplies int8 weights: "16-bit pairs", or the instruction for four 8-bit numbers
  /// ("vpdpbusd", "sdot"). All of them give the same bits.
  /// @code
  /// std::cout << attn::Context::int8().empty();  // 0
  /// @endcode
  static std::string_view int8();

  /// Frees the scratch memory that all layers of the process hold for their next forward. A running forward frees its
  /// memory when it ends. Can be called at any time.
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  /// layer.forward(xt::xtensor<float, 2>(xt::ones<float>({64, 8})));
  /// attn::Context::release_memory();
  /// std::cout << layer.forward(xt::xtensor<float, 2>(xt::ones<float>({64, 8}))).output.size();  // 512
  /// @endcode
  static void release_memory();

 private:
  std::shared_ptr<State> state_;
};

}  // namespace attn
