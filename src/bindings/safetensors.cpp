#include "attn/io/safetensors.hpp"

#include <emscripten/bind.h>

#include <memory>

#include "errors.hpp"
#include "tensors.hpp"

namespace attn::bindings {
namespace {

std::unique_ptr<NamedTensors> parse(Address bytes, std::size_t size) {
  return guard([&] { return std::make_unique<NamedTensors>(parse_safetensors({reinterpret_cast<const std::uint8_t*>(bytes), size})); });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_safetensors) { emscripten::function("parseSafetensors", &attn::bindings::parse); }
