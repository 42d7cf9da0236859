#pragma once

#include "options.hpp"

namespace command {

/// web/lib/src/cli/lens.ts writes the same bytes. Throws Misuse, attn::Error, std::runtime_error.
void run_lens(const Call& call);

}  // namespace command
