#pragma once

#include <filesystem>
#include <string>

namespace attn::test {

std::filesystem::path testdata(const std::string& name);

}  // namespace attn::test
