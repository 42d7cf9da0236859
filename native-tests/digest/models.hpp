#pragma once

#include <attn/attn.hpp>
#include <string>
#include <vector>

namespace digest {

/// One forward of a checkpoint and everything that it gives, as "hash checkpoint/case".
/// The native twin of wasm-tests/support/digest_models.ts: change both together.
std::vector<std::string> model_lines(attn::Weights weights);

}  // namespace digest
