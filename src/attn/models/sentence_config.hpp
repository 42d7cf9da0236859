#pragma once

#include <optional>
#include <string>

#include "attn/models/model_config.hpp"

// Files that sentence-transformers adds to a checkpoint. modules.json lists modules in the order of computation, each with a folder.
namespace attn::detail {

/// Folders that modules.json names; "" is the model's folder. Without modules.json there is only the transformer.
struct ModuleFolders {
  std::string transformer = {};
  std::optional<std::string> pooling = std::nullopt;
  std::vector<std::string> denses = {};
};

/// Reads modules.json. Throws FORMAT for a damaged file, UNSUPPORTED for modules that attn does not have.
ModuleFolders read_module_folders(const ModelFiles::File& modules);

/// Reads all of these files into `model`, whose sizes must be known already. Throws as read_model_config().
void read_sentence_files(const ModelFiles& files, ModelConfig& model);

/// Reads a cross-encoder's score function from config.json: in the section sentence_transformers, or at the top level in older files.
void read_score_function(const ConfigReader& config, ModelConfig& model);

/// Determines whether texts get token types, as transformers' tokenizers do: by model_input_names of tokenizer_config.json, else by the tokenizer
/// class.
void read_token_types(const ModelFiles::File& tokenizer_config, ModelConfig& model);

}  // namespace attn::detail
