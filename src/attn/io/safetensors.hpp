#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attn/io/file_path.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Receives the tensors of a file: place() is called for each with its name and shape, and returns memory for its
/// values.
/// @code
/// struct Bias : attn::TensorSink {
///   float* place(const std::string&, const attn::Shape& shape) override {
///     values.resize(static_cast<std::size_t>(shape[0]));
///     return values.data();
///   }
///   std::vector<float> values;
/// };
/// Bias sink;
/// attn::parse_safetensors(attn::write_safetensors(attn::StateDict{{"bias", xt::xarray<float>{1, 2}}}), sink);
/// std::cout << sink.values.at(1);  // 2
/// @endcode
class TensorSink {
 public:
  /// Returns memory for the values of a tensor, row-major, valid until the file has been read.
  virtual float* place(const std::string& name, const Shape& shape) = 0;

 protected:
  ~TensorSink() = default;
};

/// Reads the tensors of a safetensors file into memory of the sink.
///
/// @param bytes  the whole file
/// @param sink   receives each tensor; TensorSink has an example
/// @throws FORMAT, UNSUPPORTED, MEMORY as parse_safetensors(bytes)
void parse_safetensors(std::span<const std::uint8_t> bytes, TensorSink& sink);
/// Reads the tensors of a safetensors file from disk into memory of the sink.
///
/// @param path  a string or std::filesystem::path
/// @param sink  receives each tensor; TensorSink has an example
/// @throws FORMAT, UNSUPPORTED, MEMORY as read_safetensors(path)
void read_safetensors(const FilePath& path, TensorSink& sink);
/// Writes tensors whose numbers are row-major and without gaps.
/// @code
/// const std::vector<float> bias{1, 2};
/// const auto bytes = attn::write_safetensors_views({{"bias", attn::TensorView(bias.data(), {2})}}, {});
/// std::cout << attn::parse_safetensors(bytes).at("bias");  // { 1.,  2.}
/// @endcode
std::vector<std::uint8_t> write_safetensors_views(const StateView& tensors, const std::map<std::string, std::string>& metadata);

namespace detail {

template <class Of>
class StateSink final : public TensorSink {
 public:
  float* place(const std::string& name, const Shape& shape) override {
    return state.emplace(name, empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data();
  }
  typename StateDictType<Of>::type state;
};

}  // namespace detail

/// Reads the tensors of a safetensors file (8 bytes of header length, a JSON header, data). F32, F16, BF16 and F64
/// become float32; integer and bool tensors are checked and skipped. Tensors need not be aligned.
///
/// @param bytes  the whole file
/// @return tensors by name
/// @throws FORMAT if the file violates the format
/// @throws UNSUPPORTED for other types (F8, F4, C64)
/// @throws MEMORY if the tensors exceed the memory limit
///
/// @code
/// attn::StateDict tensors{{"bias", xt::xarray<float>{1, 2}}};
/// auto bytes = attn::write_safetensors(tensors);
/// std::cout << attn::parse_safetensors(bytes).at("bias");  // { 1.,  2.}
/// @endcode
template <class Of = float>
typename StateDictType<Of>::type parse_safetensors(std::span<const std::uint8_t> bytes) {
  detail::StateSink<Of> sink;
  parse_safetensors(bytes, sink);
  return std::move(sink.state);
}

/// Reads the tensors of a safetensors file from disk, as parse_safetensors.
///
/// @param path  a string or std::filesystem::path
/// @return tensors by name
/// @throws FORMAT if the file cannot be read or violates the format
/// @throws UNSUPPORTED, MEMORY as parse_safetensors
///
/// @code
/// try {
///   attn::read_safetensors("missing.safetensors");
/// } catch (const attn::Error& error) {
///   std::cout << to_string(error.code());  // FORMAT
/// }
/// @endcode
template <class Of = float>
typename StateDictType<Of>::type read_safetensors(const FilePath& path) {
  detail::StateSink<Of> sink;
  read_safetensors(path, sink);
  return std::move(sink.state);
}

/// Returns the bytes of a safetensors file: F32, names sorted by their bytes, data aligned to 8 bytes.
/// parse_safetensors reads it back bit for bit.
///
/// @param tensors   by name
/// @param metadata  strings by name, under __metadata__; default none
/// @throws ARGUMENT if a name or a metadata string is not UTF-8, or the name is "__metadata__"
/// @throws SHAPE if a rank exceeds 8
/// @throws MEMORY if the file exceeds the memory limit
///
/// @code
/// attn::StateDict tensors{{"bias", xt::xarray<float>{1, 2}}};
/// std::cout << attn::write_safetensors(tensors, {{"author", "me"}}).size() % 8;  // 0
/// @endcode
template <class Of = float, class State = typename StateDictType<Of>::type>
std::vector<std::uint8_t> write_safetensors(const State& tensors, const std::map<std::string, std::string>& metadata = {}) {
  return write_safetensors_views(detail::StateInput(tensors, "write_safetensors").views, metadata);
}

}  // namespace attn
