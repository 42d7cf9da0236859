#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model.hpp"

namespace attn::detail {

/// Throws OUT_OF_RANGE if a weight is outside the range of float16, FORMAT if NaN or infinity would become int8.
void check_weights_as(const EncoderModel& model, FileWeights weights);
/// Writes model.safetensors, one tensor at a time.
void write_weights(const EncoderModel& model, FileWeights weights, std::ostream& to);
/// Returns config.json with members that describe the weights and the head updated.
std::string config_as(std::span<const std::uint8_t> config, const EncoderModel& model, FileWeights weights);

}  // namespace attn::detail
