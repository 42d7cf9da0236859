#include "support/testdata.hpp"

namespace attn::test {

// Keeps the clone's path out of other objects.
std::filesystem::path testdata(const std::string& name) { return std::filesystem::path(ATTN_TESTDATA) / name; }

}  // namespace attn::test
