#include "attn/io/safetensors.hpp"

#include "define.hpp"

namespace attn::bindings {
namespace {

auto parse(Arguments& arguments) {
  const std::span<const std::uint8_t> bytes = arguments.bytes("bytes", "a safetensors file");
  return [=](Result& result) { result.add(parse_safetensors(bytes)); };
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_safetensors) {
  using namespace attn::bindings;
  define_function<parse>("parseSafetensors", "tensors");
}
