#pragma once

#include <attn/attn.hpp>
#include <string>
#include <vector>

namespace digest {

/// "hash checkpoint/case". Keep in step with wasm-tests/support/digest_models.ts.
std::vector<std::string> model_lines(attn::Weights weights);

}  // namespace digest
