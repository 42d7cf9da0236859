#pragma once

#include <string>

#include "attn/core.hpp"
#include "options.hpp"

namespace command {

/// TEXT, or standard input without its last line break. Throws Misuse if empty, std::runtime_error for invalid UTF-8,
/// std::system_error if unreadable.
std::string text_of(const Call& call);
attn::TextModel load_model(const Call& call);

/// web/lib/src/cli/generation.ts writes the same bytes. Throws Misuse, attn::Error, std::runtime_error.
void run_generation(const Call& call);

}  // namespace command
