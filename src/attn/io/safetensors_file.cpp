#include <algorithm>
#include <filesystem>
#include <vector>

#include "attn/io/files.hpp"
#include "attn/io/safetensors.hpp"
#include "attn/io/safetensors_header.hpp"

namespace attn {

void read_safetensors(const FilePath& place, TensorSink& sink) {
  using namespace detail;
  const std::filesystem::path path(place.text());
  InputFile file(path);
  file.check_open("read_safetensors");
  const auto read = [&](void* to, std::uint64_t size) {
    file.read(static_cast<char*>(to), static_cast<std::streamsize>(size));
    if (!file) refuse_safetensors({path.string(), " is unreadable"});
  };
  check_safetensors_size(file.size());
  std::uint8_t prefix[kSafetensorsPrefix] = {};
  read(prefix, sizeof prefix);
  std::vector<std::uint8_t> header(safetensors_header_size(prefix, file.size()));
  read(header.data(), header.size());
  const std::vector<SafetensorsEntry> entries = parse_safetensors_header(header, file.size() - sizeof prefix - header.size());
  header = {};
  check_safetensors_memory(entries);

  constexpr std::uint64_t kPiece = 1 << 20;
  std::vector<std::uint8_t> piece;
  for (const SafetensorsEntry& entry : entries) {
    if (!entry.type->is_float) {
      file.seekg(static_cast<std::streamoff>(entry.last - entry.first), std::ios::cur);
      continue;
    }
    float* to = sink.place(entry.name, entry.shape);
    if (entry.type->name == "F32") {
      read(to, entry.last - entry.first);
      continue;
    }
    piece.resize(kPiece);
    for (std::uint64_t first = entry.first; first < entry.last; first += kPiece) {
      const std::uint64_t size = std::min(kPiece, entry.last - first), count = size / entry.type->size;
      read(piece.data(), size);
      convert_floats(*entry.type, piece.data(), to, static_cast<std::size_t>(count));
      to += count;
    }
  }
}

}  // namespace attn
