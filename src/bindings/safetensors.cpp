#include "attn/io/safetensors.hpp"

#include "define.hpp"

namespace attn::bindings {
namespace {

void parse(Arguments& arguments, Work<> work) {
  const std::span<const std::uint8_t> bytes = arguments.bytes("bytes", "a safetensors file");
  work([&](Result& result) {
    struct Sink final : TensorSink {
      explicit Sink(Result& to) : result(to) {}
      float* place(const std::string& name, const Shape& shape) override { return result.add(name, shape); }
      Result& result;
    } sink(result);
    parse_safetensors(bytes, sink);
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_safetensors) {
  using namespace attn::bindings;
  define_function<parse>("parseSafetensors", "tensors");
}
