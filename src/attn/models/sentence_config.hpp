#pragma once

#include <optional>
#include <string>

#include "attn/models/model_config.hpp"

// What sentence-transformers writes beside a checkpoint: modules.json lists what is done one after the other, each with a folder of its own.
namespace attn::detail {

/// The folders that modules.json names, "" for the model's own; where it is not there only the first is.
struct ModuleFolders {
  std::string transformer = {};
  std::optional<std::string> pooling = std::nullopt, dense = std::nullopt;
};

/// Throws FORMAT, and UNSUPPORTED for modules that attn does not have.
ModuleFolders read_module_folders(const ModelFiles::File& modules);

/// Everything that these files say, once the model's own sizes are known. Throws as read_model_config.
void read_sentence_files(const ModelFiles& files, ModelConfig& model);

/// The function of the scores where config.json has a cross-encoder's: in its section sentence_transformers, or as older ones have it.
void read_score_function(const ConfigReader& config, ModelConfig& model);

/// Whether texts get token types, as transformers' tokenizers decide it by model_input_names of
/// tokenizer_config.json, else by what the class is made for.
void read_token_types(const ModelFiles::File& tokenizer_config, ModelConfig& model);

}  // namespace attn::detail
