#include "attn/io/safetensors.hpp"

#include <vector>

#include "attn/io/safetensors_header.hpp"

namespace attn {

void parse_safetensors(std::span<const std::uint8_t> bytes, TensorSink& sink) {
  using namespace detail;
  check_safetensors_size(bytes.size());
  const std::size_t header_size = safetensors_header_size(bytes.data(), bytes.size());
  const std::span<const std::uint8_t> data = bytes.subspan(kSafetensorsPrefix + header_size);
  const std::vector<SafetensorsEntry> entries = parse_safetensors_header(bytes.subspan(kSafetensorsPrefix, header_size), data.size());

  check_safetensors_memory(entries);
  for (const SafetensorsEntry& entry : entries)
    if (entry.type->is_float)
      convert_floats(*entry.type, data.data() + entry.first, sink.place(entry.name, entry.shape), static_cast<std::size_t>(entry.count()));
}

}  // namespace attn
