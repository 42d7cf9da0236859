#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model.hpp"

namespace attn::detail {

/// Throws OUT_OF_RANGE beyond float16, FORMAT for NaN and infinity as int8.
void check_weights_as(const EncoderModel& model, FileWeights weights);
/// Writes one tensor at a time.
void write_weights(const EncoderModel& model, FileWeights weights, std::ostream& to);
/// Updates members that describe the weights and the head.
std::string config_as(std::span<const std::uint8_t> config, const EncoderModel& model, FileWeights weights);

}  // namespace attn::detail
