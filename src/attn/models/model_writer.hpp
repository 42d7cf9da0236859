#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "attn/io/file_path.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model.hpp"

namespace attn::detail {

/// Throws OUT_OF_RANGE beyond float16, FORMAT for NaN and infinity as int8.
void check_weights_as(const EncoderModel& model, FileWeights weights);
void write_weights(const EncoderModel& model, FileWeights weights, std::ostream& to);
std::string config_as(std::span<const std::uint8_t> config, const EncoderModel& model, FileWeights weights);

/// Writes a folder that load() and transformers read, all files or none: `files`, with config.json for these weights, and model.safetensors in the
/// folder `base` of config.json. Throws OUT_OF_RANGE beyond float16, FORMAT for NaN and infinity as int8, ARGUMENT if a file is unwritable.
void save_model(const EncoderModel& model, const SmallFiles& files, const std::string& base, const FilePath& folder, const SaveOptions& options,
                StagedFiles& staged);

}  // namespace attn::detail
