#pragma once

#include <string_view>
#include <vector>

#include "attn/kernels/kernels.hpp"

// Selects the table that best() returns, in native builds only. Kernels do not include this file, because each is
// compiled for a single architecture.
namespace attn::kernels {

/// Returns the tables that this process can use, narrowest first: those that are compiled in, supported by this
/// machine, and not wider than the architecture that the environment variable ATTN_MAX_ARCH names, if it is set. Throws
/// CONFIG, naming `op`, if ATTN_MAX_ARCH is not the name of a compiled architecture.
std::vector<const KernelTable*> available(std::string_view op);

/// Returns the table that best() would return, without making the choice final.
const KernelTable& chosen(std::string_view op);

/// Makes best() return the table with this name from now on. Throws CONFIG if the table is not available or another one
/// is already in use.
void pin(std::string_view op, std::string_view architecture);

}  // namespace attn::kernels
