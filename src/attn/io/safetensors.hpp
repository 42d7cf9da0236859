#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attn/io/file_path.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Where the tensors of a file go: place() is called for each with its name and shape, and gives room for its numbers.
class TensorSink {
 public:
  virtual float* place(const std::string& name, const Shape& shape) = 0;

 protected:
  ~TensorSink() = default;
};

void parse_safetensors(std::span<const std::uint8_t> bytes, TensorSink& sink);
void read_safetensors(const FilePath& path, TensorSink& sink);
/// Row-major numbers of the shapes that the views have.
std::vector<std::uint8_t> write_safetensors_views(const StateView& tensors, const std::map<std::string, std::string>& metadata);

namespace detail {

/// A sink that is a state dictionary.
template <class Of>
class StateSink final : public TensorSink {
 public:
  float* place(const std::string& name, const Shape& shape) override {
    return state.emplace(name, empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data();
  }
  typename StateDictType<Of>::type state;
};

}  // namespace detail

/// Tensors of a safetensors file (8 bytes of header length, a JSON header, data) as float32.
/// F32, F16, BF16 and F64 are converted; integer and bool tensors are checked and left out. Tensors need not be aligned.
/// Throws FORMAT for anything that the format does not allow, UNSUPPORTED for other types (F8, F4, C64), MEMORY.
template <class Of = float>
typename StateDictType<Of>::type parse_safetensors(std::span<const std::uint8_t> bytes) {
  detail::StateSink<Of> sink;
  parse_safetensors(bytes, sink);
  return std::move(sink.state);
}

/// The same from a file. Throws FORMAT also when it cannot be read.
template <class Of = float>
typename StateDictType<Of>::type read_safetensors(const FilePath& path) {
  detail::StateSink<Of> sink;
  read_safetensors(path, sink);
  return std::move(sink.state);
}

/// The bytes of a safetensors file, which parse_safetensors reads back bit for bit: F32, names sorted by their bytes, data from a
/// multiple of 8 on. Throws ARGUMENT for a name or metadata that is not UTF-8 or the name "__metadata__", SHAPE for a rank above 8,
/// MEMORY.
template <class Of = float, class State = typename StateDictType<Of>::type>
std::vector<std::uint8_t> write_safetensors(const State& tensors, const std::map<std::string, std::string>& metadata = {}) {
  return write_safetensors_views(detail::StateInput(tensors, "write_safetensors").views, metadata);
}

}  // namespace attn
