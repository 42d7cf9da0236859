#pragma once

#include "attn/core.hpp"
#include "running.hpp"

namespace attn::python {

void define_embedding(nb::module_& module);
/// Requires define_embedding().
void define_word_embeddings(nb::class_<Shared<TextModel>>& model);

}  // namespace attn::python
