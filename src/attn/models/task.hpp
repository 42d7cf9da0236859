#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace attn {

/// What a checkpoint's head is for.
enum class Task : std::uint8_t {
  embedding,  ///< there is no head
  text_classification,
  token_classification,
  fill_mask,
  question_answering,
  multiple_choice,
};

/// As Hugging Face calls them.
inline constexpr std::array<std::string_view, 6> kTaskNames{"embedding", "text-classification", "token-classification",
                                                            "fill-mask", "question-answering",  "multiple-choice"};

constexpr std::string_view name_of(Task task) { return kTaskNames[static_cast<std::size_t>(task)]; }

}  // namespace attn
