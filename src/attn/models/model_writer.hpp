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
void write_weights(const EncoderModel& model, FileWeights weights, std::ostream& to);
std::string config_as(std::span<const std::uint8_t> config, const EncoderModel& model, FileWeights weights);

}  // namespace attn::detail
