#include <emscripten/bind.h>

#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"
#include "define.hpp"
#include "errors.hpp"
#include "heap.hpp"

namespace attn::bindings {
namespace {

constexpr std::align_val_t kAlignment{64};

Address reserve_block(std::size_t bytes) {
  return guard([&] { return reinterpret_cast<Address>(::operator new(bytes, kAlignment)); });
}

void release_block(Address address) { ::operator delete(reinterpret_cast<void*>(address), kAlignment); }

void set_memory_limit_of(double bytes) { set_memory_limit(static_cast<std::uint64_t>(bytes)); }

std::string error_codes() { return join(kErrorCodeNames); }

std::string version() { return ATTN_VERSION; }

std::string int8() { return kernels::best().int8.name; }

void measure_peak(Arguments& arguments, Work<> work) {
  std::int64_t multiply_adds = 0;
  arguments.require("multiplyAdds", multiply_adds);
  std::int64_t weights = 0;
  static constexpr std::array<std::string_view, 2> kNames{"float32", "int8"};
  arguments.group("options", [&] { arguments.option("weights", weights, kNames); });
  work([&](Result& result) {
    constexpr std::int64_t kMost = 1'000'000'000;
    if (multiply_adds < 1 || multiply_adds > kMost)
      detail::fail(ErrorCode::out_of_range, "peak", "multiply_adds", {"a whole number from 1 to ", kMost}, {multiply_adds});
    const kernels::KernelTable& kernel = kernels::best();
    const auto run = weights == 0 ? kernel.multiply_adds : kernel.int8.multiply_adds;
    result.set_number(static_cast<double>(run(static_cast<std::size_t>(multiply_adds))));
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_runtime) {
  using namespace attn::bindings;
  attn::kernels::best();  // before there are threads: -fno-threadsafe-statics (cmake/wasm.cmake)
  define_function<measure_peak>("peak", "number");
  emscripten::function("version", &version);
  emscripten::function("int8", &int8);
  emscripten::function("errorCodes", &error_codes);
  emscripten::function("signatures", &signatures);
  emscripten::function("heapUsed", &heap_used);
  emscripten::function("heapPeak", &heap_peak);
  emscripten::function("setMemoryLimit", &set_memory_limit_of);
  // With ASSERTIONS, Emscripten reserves the names "allocate" and "free".
  emscripten::function("reserve", &reserve_block);
  emscripten::function("release", &release_block);
  emscripten::function("setNumThreads", +[](unsigned count) { guard([&] { attn::set_num_threads(count); }); });
}
