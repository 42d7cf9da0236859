#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "attn/io/json_text.hpp"
#include "attn/io/safetensors.hpp"
#include "attn/io/safetensors_layout.hpp"
#include "attn/io/safetensors_limits.hpp"
#include "attn/tensor/sort.hpp"
#include "attn/tensor/view.hpp"

namespace attn {
namespace detail {
namespace {

constexpr const char* kMetadata = "__metadata__";

void append_string(std::string_view op, std::string& to, const std::string& value) {
  if (!append_json_string(to, value)) fail(ErrorCode::argument, op, "a name or metadata", {"valid UTF-8"}, {"invalid UTF-8"});
}

}  // namespace

void sort_safetensors(std::vector<SafetensorsItem>& items) {
  sort_compactly(items, [](const SafetensorsItem& a, const SafetensorsItem& b) { return std::tie(b.width, a.name) < std::tie(a.width, b.name); });
}

std::string safetensors_start(std::string_view op, const std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata) {
  const std::size_t names = items.size() + (metadata.empty() ? 0 : 1);
  if (names > kMaxTensors) fail(ErrorCode::argument, op, "tensors", {"at most ", kMaxTensors, " names"}, {names, " names"});

  std::string start(8, '\0');
  start += '{';
  if (!metadata.empty()) {
    append_string(op, start, kMetadata);
    start += ":{";
    for (const auto& [key, value] : metadata) {
      if (start.back() != '{') start += ',';
      append_string(op, start, key);
      start += ':';
      append_string(op, start, value);
    }
    start += '}';
  }
  std::uint64_t end = 0;
  for (const auto& [name, dtype, width, shape] : items) {
    if (name == kMetadata) fail(ErrorCode::argument, op, "a name", {"another name"}, {name}, "The format reserves this name");
    const std::uint64_t first = end;
    end += width * static_cast<std::uint64_t>(checked_size(shape, op, name));
    if (start.back() != '{') start += ',';
    append_string(op, start, name);
    start += text({":{\"dtype\":\"", dtype, "\",\"shape\":["});
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) start += text({axis > 0 ? "," : "", shape[axis]});
    start += text({"],\"data_offsets\":[", first, ",", end, "]}"});
  }
  start += '}';

  start.resize((start.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header = start.size() - 8;
  if (header > kMaxHeader) fail(ErrorCode::argument, op, "tensors", {"names that fit into a header of 16 MiB"}, {header, " bytes"});
  std::memcpy(start.data(), &header, 8);
  return start;
}

void check_safetensors_memory(std::string_view op, const std::vector<SafetensorsItem>& items) {
  MemoryEstimate memory(op);
  for (const SafetensorsItem& item : items) memory.add(item.name, item.shape);
  memory.check();
}

}  // namespace detail

std::vector<std::uint8_t> write_safetensors_views(const StateView& tensors, const std::map<std::string, std::string>& metadata) {
  constexpr std::string_view kOp = "write_safetensors";
  std::vector<detail::SafetensorsItem> items;
  for (const auto& [name, tensor] : tensors) items.push_back({name, "F32", 4, tensor.shape});
  const std::string start = detail::safetensors_start(kOp, items, metadata);
  detail::check_safetensors_memory(kOp, items);
  std::size_t size = 0;
  for (const auto& [name, tensor] : tensors) size += 4 * static_cast<std::size_t>(checked_size(tensor.shape, kOp, name));
  std::vector<std::uint8_t> bytes(start.size() + size);
  std::memcpy(bytes.data(), start.data(), start.size());
  std::uint8_t* to = bytes.data() + start.size();
  for (const auto& [name, tensor] : tensors) {
    const auto length = 4 * static_cast<std::size_t>(checked_size(tensor.shape, kOp, name));
    if (length > 0) std::memcpy(to, tensor.data, length);
    to += length;
  }
  return bytes;
}

}  // namespace attn
