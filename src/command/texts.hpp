#pragma once

#include "options.hpp"

namespace command {

/// Runs attn embed, classify, tag, fill, answer or rank: one result per line. web/lib/src/cli/texts.ts writes the
/// same bytes. Throws Misuse, attn::Error and std::runtime_error.
void run_texts(const Call& call);

}  // namespace command
