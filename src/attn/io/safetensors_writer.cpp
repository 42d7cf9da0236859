#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "attn/io/safetensors.hpp"
#include "attn/io/safetensors_limits.hpp"

// The library writes the strings, not the tree around them: that would allocate when it is destroyed, which ends the program when memory
// is short.
namespace attn {
namespace {

constexpr const char* kOp = "write_safetensors";
constexpr const char* kMetadata = "__metadata__";

/// Appends a JSON string. Throws ARGUMENT where the library finds that the value is not UTF-8, which JSON is.
void append_string(std::string& to, const std::string& value) {
  try {
    to += nlohmann::json(value).dump();
  } catch (const nlohmann::json::type_error&) {
    detail::fail(ErrorCode::argument, kOp, "a name or metadata", {"UTF-8"}, {"other bytes"});
  }
}

}  // namespace

std::vector<std::uint8_t> write_safetensors_views(const StateView& tensors, const std::map<std::string, std::string>& metadata) {
  const std::size_t names = tensors.size() + (metadata.empty() ? 0 : 1);
  if (names > detail::kMaxTensors) detail::fail(ErrorCode::argument, kOp, "tensors", {detail::kMaxTensors, " names at the most"}, {names, " names"});

  std::string header = "{";
  if (!metadata.empty()) {
    append_string(header, kMetadata);
    header += ":{";
    for (const auto& [key, value] : metadata) {
      if (header.back() != '{') header += ',';
      append_string(header, key);
      header += ':';
      append_string(header, value);
    }
    header += '}';
  }
  MemoryEstimate memory(kOp);
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : tensors) {  // a map: sorted by bytes
    if (name == kMetadata) detail::fail(ErrorCode::argument, kOp, "a name", {"another one: the format keeps it for itself"}, {name});
    const Shape& shape = tensor.shape;
    memory.add(name, shape);
    const std::uint64_t first = end;
    end += 4 * static_cast<std::uint64_t>(checked_size(shape, kOp, name));
    if (header.back() != '{') header += ',';
    append_string(header, name);
    header += ":{\"dtype\":\"F32\",\"shape\":[";
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) header += detail::text({axis > 0 ? "," : "", shape[axis]});
    header += detail::text({"],\"data_offsets\":[", first, ",", end, "]}"});
  }
  header += '}';
  memory.check();

  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > detail::kMaxHeader)
    detail::fail(ErrorCode::argument, kOp, "tensors", {"names that fit into a header of 16 MiB"}, {header.size(), " bytes"});
  std::vector<std::uint8_t> bytes(8 + header.size() + static_cast<std::size_t>(end));
  const std::uint64_t header_size = header.size();
  std::memcpy(bytes.data(), &header_size, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  std::uint8_t* to = bytes.data() + 8 + header.size();
  for (const auto& [name, tensor] : tensors) {
    const auto size = 4 * static_cast<std::size_t>(checked_size(tensor.shape, kOp, name));
    if (size > 0) std::memcpy(to, tensor.data, size);
    to += size;
  }
  return bytes;
}

}  // namespace attn
