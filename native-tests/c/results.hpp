#pragma once

#include <string>
#include <vector>

#include "attn/c.h"

namespace attn::test {

/// The texts of this name in the results of a C function.
inline std::vector<std::string> texts_in(const attn_tensors* results, const char* name) {
  std::vector<std::string> texts;
  for (attn_text text{}; attn_tensors_text(results, name, texts.size(), &text); texts.emplace_back(text.data, text.size)) {
  }
  return texts;
}

}  // namespace attn::test
