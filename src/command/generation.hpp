#pragma once

#include <string>

#include "attn/core.hpp"
#include "options.hpp"

namespace command {

/// If TEXT is "-", reads standard input without its last line break. Throws Misuse if the text is empty,
/// std::runtime_error if it is not UTF-8, std::system_error.
std::string text_of(const Call& call);
attn::TextModel load_model(const Call& call);

/// web/lib/src/cli/generation.ts writes the same bytes.
void run_generation(const Call& call);

}  // namespace command
