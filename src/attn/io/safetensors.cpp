#include "attn/io/safetensors.hpp"

#include <filesystem>
#include <fstream>
#include <vector>

#include "attn/io/safetensors_header.hpp"

namespace attn {

void parse_safetensors(std::span<const std::uint8_t> bytes, TensorSink& sink) {
  using namespace detail;
  if (bytes.size() < kSafetensorsPrefix) refuse_safetensors({"the file has ", bytes.size(), " bytes, a header length takes 8"});
  const std::size_t header_size = safetensors_header_size(bytes.data(), bytes.size());
  const std::span<const std::uint8_t> data = bytes.subspan(kSafetensorsPrefix + header_size);
  const std::vector<SafetensorsEntry> entries = parse_safetensors_header(bytes.subspan(kSafetensorsPrefix, header_size), data.size());

  MemoryEstimate memory("safetensors");
  for (const SafetensorsEntry& entry : entries)
    if (entry.type->is_float) memory.add(entry.name, {static_cast<std::int64_t>(entry.count())});
  memory.check();

  for (const SafetensorsEntry& entry : entries)
    if (entry.type->is_float)
      convert_floats(*entry.type, data.data() + entry.first, sink.place(entry.name, entry.shape), static_cast<std::size_t>(entry.count()));
}

void read_safetensors(const FilePath& place, TensorSink& sink) {
  const std::filesystem::path path(place.text());
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);  // a folder opens as a file does, but has no size
  std::ifstream file(path, std::ios::binary);
  if (none || !file) detail::refuse_safetensors({"cannot open ", path.string()});
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) detail::refuse_safetensors({"cannot read ", path.string()});
  parse_safetensors(bytes, sink);
}

}  // namespace attn
