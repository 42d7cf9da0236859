#include "support/testdata.hpp"

namespace attn::test {

// Here alone, so that what else is compiled does not depend on where the clone is.
std::filesystem::path testdata(const std::string& name) { return std::filesystem::path(ATTN_TESTDATA) / name; }

}  // namespace attn::test
