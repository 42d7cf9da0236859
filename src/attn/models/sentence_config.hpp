#pragma once

#include <optional>
#include <string>

#include "attn/models/model_config.hpp"

namespace attn::detail {

/// Folders in modules.json; "" is the model's folder. Without the file there is only the transformer.
struct ModuleFolders {
  std::string transformer = {};
  std::optional<std::string> pooling = std::nullopt;
  std::vector<std::string> denses = {};
};

ModuleFolders read_module_folders(const ModelFiles::File& modules);

/// The model's sizes must be known already.
void read_sentence_files(const ModelFiles& files, ModelConfig& model);

/// A cross-encoder's function in config.json: in sentence_transformers, or at the top level in older files.
void read_score_function(const ConfigReader& config, ModelConfig& model);

/// As transformers' tokenizers: by model_input_names of tokenizer_config.json, else by the tokenizer class.
void read_token_types(const ModelFiles::File& tokenizer_config, ModelConfig& model);

}  // namespace attn::detail
