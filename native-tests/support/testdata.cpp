#include "support/testdata.hpp"

namespace attn::test {

// Only this file contains the path, so that the other objects do not depend on the location of the clone.
std::filesystem::path testdata(const std::string& name) { return std::filesystem::path(ATTN_TESTDATA) / name; }

}  // namespace attn::test
