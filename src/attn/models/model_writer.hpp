#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model.hpp"

namespace attn::detail {

/// Throws where the model's numbers cannot be written so: OUT_OF_RANGE for those that float16 has not, FORMAT for NaN and infinity as int8.
void check_weights_as(const EncoderModel& model, FileWeights weights);
/// model.safetensors, a tensor at a time.
void write_weights(const EncoderModel& model, FileWeights weights, std::ostream& to);
/// config.json with what it says of its weights made right.
std::string config_as(std::span<const std::uint8_t> config, const EncoderModel& model, FileWeights weights);

}  // namespace attn::detail
