#pragma once

#include "options.hpp"

namespace command {

/// Runs attn generate and attn score. web/lib/src/cli/generation.ts writes the same bytes. Throws Misuse, attn::Error
/// and std::runtime_error.
void run_generation(const Call& call);

}  // namespace command
