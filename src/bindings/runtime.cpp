#include <emscripten/bind.h>

#include <cstdint>
#include <new>
#include <string>

#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"
#include "errors.hpp"
#include "heap.hpp"
#include "signature.hpp"

namespace attn::bindings {
namespace {

constexpr std::align_val_t kAlignment{64};

Address reserve(std::size_t bytes) {
  return guard([&] { return reinterpret_cast<Address>(::operator new(bytes, kAlignment)); });
}

void release(Address address) { ::operator delete(reinterpret_cast<void*>(address), kAlignment); }

void set_memory_limit_of(double bytes) { set_memory_limit(static_cast<std::uint64_t>(bytes)); }

std::string error_codes() { return join(kErrorCodeNames); }

std::string trace_names() { return join(kTraceNames); }

std::string version() { return ATTN_VERSION; }

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_runtime) {
  using namespace attn::bindings;
  emscripten::function("version", &version);
  emscripten::function("errorCodes", &error_codes);
  emscripten::function("signatures", &signatures);
  emscripten::function("traceNames", &trace_names);
  emscripten::function("heapUsed", &heap_used);
  emscripten::function("heapPeak", &heap_peak);
  emscripten::function("setMemoryLimit", &set_memory_limit_of);
  // Not allocate and free: with ASSERTIONS Emscripten guards those names on the module, for functions it once had.
  emscripten::function("reserve", &reserve);
  emscripten::function("release", &release);
  emscripten::function("setNumThreads", +[](unsigned count) { guard([&] { attn::set_num_threads(count); }); });
}
