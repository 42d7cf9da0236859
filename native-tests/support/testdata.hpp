#pragma once

#include <filesystem>
#include <string>

namespace attn::test {

/// A file of the folder testdata/.
std::filesystem::path testdata(const std::string& name);

}  // namespace attn::test
