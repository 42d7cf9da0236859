#pragma once

#include "options.hpp"

namespace command {

/// Runs attn lens. web/lib/src/cli/lens.ts writes the same bytes. Throws Misuse, attn::Error and std::runtime_error.
void run_lens(const Call& call);

}  // namespace command
