#pragma once

#include <string>

#include "attn/core.hpp"
#include "options.hpp"

namespace command {

/// Returns the argument TEXT, or all of standard input without its last line break. Throws Misuse if it is empty,
/// std::runtime_error for invalid UTF-8, std::system_error if standard input cannot be read.
std::string text_of(const Call& call);
/// Loads MODEL with --weights.
attn::TextModel load_model(const Call& call);

/// Runs attn generate or score. web/lib/src/cli/generation.ts writes the same bytes. Throws Misuse, attn::Error and
/// std::runtime_error.
void run_generation(const Call& call);

}  // namespace command
