#include "attn/io/safetensors_shards.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attn/io/files.hpp"
#include "attn/io/folder_name.hpp"
#include "attn/io/json.hpp"
#include "attn/io/safetensors_header.hpp"
#include "attn/io/safetensors_layout.hpp"
#include "attn/io/safetensors_limits.hpp"

namespace attn::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxIndex = 16 << 20;
constexpr std::size_t kMaxShards = 10'000;

using Shards = std::map<std::string, std::vector<std::string>>;

class Reader {
 public:
  Reader(std::string_view op, const fs::path& index) : op_(op), index_(index) {}

  Shards read_index() const {
    InputFile file(index_);
    file.check_open(op_);
    if (file.size() > kMaxIndex) refuse(index_, {"at most ", kMaxIndex, " bytes"}, {file.size(), " bytes"});
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.size()));
    read(file, index_, bytes);
    const Json json = parse_json(index_.filename().string(), bytes, bytes.size());
    const Json* const map = json.object() != nullptr ? json.find("weight_map") : nullptr;
    if (map == nullptr || map->object() == nullptr || map->object()->empty())
      refuse(index_, {"an object with weight_map, the file of each tensor"}, {"has no valid weight_map"});
    Shards shards;
    for (const auto& [tensor, file_name] : *map->object()) {
      const std::string* const name = file_name.string();
      if (name == nullptr || name->empty() || !is_folder_name(*name))
        refuse(index_, {"the name of a file in the same folder for \"", tensor, "\""}, {name != nullptr ? *name : std::string(file_name.kind())});
      shards[*name].push_back(tensor);
      if (shards.size() > kMaxShards) refuse(index_, {"at most ", kMaxShards}, {"has more files"});
    }
    return shards;
  }

  /// Leaves the stream at the data.
  std::vector<std::uint8_t> read_header(InputFile& file, const fs::path& path) const {
    file.check_open(op_);
    check_safetensors_size(file.size());
    std::vector<std::uint8_t> header(kSafetensorsPrefix);
    read(file, path, header);
    header.resize(safetensors_header_size(header.data(), file.size()));
    read(file, path, header);
    return header;
  }

  std::vector<SafetensorsItem> merge(const Shards& shards) const {
    std::vector<SafetensorsItem> items;
    std::map<std::string, std::string> seen;
    for (const auto& [name, expected] : shards) {
      InputFile file(path_of(name));
      const std::vector<std::uint8_t> header = read_header(file, path_of(name));
      for (const SafetensorsEntry& entry : parse_safetensors_header(header, file.size() - kSafetensorsPrefix - header.size())) {
        const auto [before, is_new] = seen.emplace(entry.name, name);
        if (!is_new) refuse(path_of(name), {"each tensor in one file"}, {"has \"", entry.name, "\", which ", before->second, " has too"});
        if (items.size() == kMaxTensors) refuse(index_, {"at most ", kMaxTensors}, {"has more tensors"});
        items.push_back({entry.name, entry.type->name, entry.type->size, entry.shape});
      }
      for (const std::string& tensor : expected)
        if (const auto found = seen.find(tensor); found == seen.end() || found->second != name)
          refuse(path_of(name), {"each tensor that ", index_.filename().string(), " names"}, {"has no \"", tensor, "\""});
    }
    return items;
  }

  fs::path path_of(const std::string& name) const { return index_.parent_path() / name; }

  void copy_data(const std::string& name, const std::function<void(std::span<const std::uint8_t>)>& write) const {
    InputFile file(path_of(name));
    read_header(file, path_of(name));
    file.read_rest(write);
  }

 private:
  [[noreturn]] void refuse(const fs::path& path, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got) const {
    fail(ErrorCode::format, op_, path.string(), expected, got);
  }
  void read(InputFile& file, const fs::path& path, std::vector<std::uint8_t>& bytes) const {
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) refuse(path, {"a readable file"}, {"unreadable"});
  }

  std::string_view op_;
  const fs::path& index_;
};

}  // namespace

void read_safetensors_shards(std::string_view op, const fs::path& index, const std::function<void(std::span<const std::uint8_t>)>& write) {
  const Reader reader(op, index);
  const Shards shards = reader.read_index();
  const std::string start = safetensors_start(op, reader.merge(shards), {});
  write({reinterpret_cast<const std::uint8_t*>(start.data()), start.size()});
  for (const auto& [name, tensors] : shards) reader.copy_data(name, write);
}

}  // namespace attn::detail
