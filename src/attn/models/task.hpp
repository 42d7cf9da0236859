#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace attn {

/// The purpose of a checkpoint's head.
enum class Task : std::uint8_t {
  embedding,  ///< no head
  text_classification,
  token_classification,
  fill_mask,
  question_answering,
  multiple_choice,
  text_generation,
  image_classification,
};

/// Names as used by Hugging Face.
inline constexpr std::array<std::string_view, 8> kTaskNames{"embedding",       "text-classification", "token-classification",
                                                            "fill-mask",       "question-answering",  "multiple-choice",
                                                            "text-generation", "image-classification"};

/// Returns the name of a task.
/// @code
/// std::cout << name_of(attn::Task::fill_mask);  // fill-mask
/// @endcode
constexpr std::string_view name_of(Task task) { return kTaskNames[static_cast<std::size_t>(task)]; }

}  // namespace attn
