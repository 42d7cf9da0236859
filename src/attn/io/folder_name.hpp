#pragma once

#include <algorithm>
#include <string_view>

namespace attn::detail {

/// Whether a file may name a folder beside it so: such a name leads nowhere else. "" is the file's own folder.
inline bool is_folder_name(std::string_view name) {
  return name.size() <= 100 && !name.starts_with('.') && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c == '.';
         });
}

/// A path of modules.json without the parts that joining it to the model's folder leaves out: "1_Pooling" of "./1_Pooling/".
inline std::string_view module_folder(std::string_view path) {
  if (path == ".") return "";
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace attn::detail
