#include "attn/models/text_generation.hpp"

#include <algorithm>
#include <utility>

#include "attn/models/language_model.hpp"
#include "attn/models/text_model.hpp"
#include "attn/models/text_model_parts.hpp"

namespace attn {
namespace {

constexpr std::string_view kGenerate = "generate";

/// Some decoders drop the first space, so a few tokens of the prompt stay before the new ones.
class NewText {
 public:
  NewText(const TextModel& model, std::span<const std::int64_t> prompt)
      : model_(model),
        ids_(prompt.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(prompt.size(), kContext)), prompt.end()),
        start_(decoded().size()) {}

  /// Whole characters only.
  std::string add(std::int64_t id) {
    ids_.push_back(id);
    const std::string all = decoded();
    text_ = all.substr(std::min(start_, all.size()));
    constexpr std::string_view kIncomplete = "\uFFFD";
    if (text_.ends_with(kIncomplete) || text_.size() < told_) return "";
    return text_.substr(std::exchange(told_, text_.size()));
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr std::size_t kContext = 8;
  std::string decoded() const { return model_.decode(ids_, true); }

  const TextModel& model_;
  std::vector<std::int64_t> ids_;
  std::size_t start_, told_ = 0;
  std::string text_;
};

void check_generate(const GenerateOptions& options) {
  detail::check_sampling(kGenerate, options.sampling);
  if (options.max_new_tokens < 1) detail::fail(ErrorCode::config, kGenerate, "max_new_tokens", {"a number of at least 1"}, {options.max_new_tokens});
  for (const std::string& stop : options.stop)
    if (stop.empty()) detail::fail(ErrorCode::argument, kGenerate, "stop", {"strings that are not empty"}, {"an empty string"});
}

std::size_t find_stop(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

}  // namespace

std::vector<std::int64_t> TextModel::prompt_ids(std::string_view op, const std::string& text, bool add_special_tokens) const {
  encoder().check_task(op, Task::text_generation);
  const TokenizeOptions options{.max_length = encoder().config().max_length, .truncation = false, .add_special_tokens = add_special_tokens};
  const EncodedTexts encoding = detail::naming_text("text", 0, [&] { return encode(std::vector{text}, 0, 1, options); });
  return {encoding.input_ids.begin(), encoding.input_ids.end()};
}

Shape TextModel::check_unembed(const TensorView& hidden_states) const { return encoder().check_unembed("unembed", hidden_states.shape); }

void TextModel::run_unembed(const TensorView& hidden_states, float* logits) const {
  detail::Scratch scratch;
  const float* const rows = detail::without_gaps(hidden_states, scratch);
  encoder().run_head(rows, checked_size(hidden_states.shape, "unembed", "hidden_states") / encoder().config().hidden_size, logits);
}

KeyValueCache TextModel::create_cache(const CacheOptions& options) const {
  return encoder().make_cache(options.batch_size, options.max_length.value_or(encoder().config().max_length));
}

std::vector<NextToken> TextModel::next_token(const std::string& text, std::int64_t top_k) const {
  constexpr std::string_view kOp = "next_token";
  if (top_k < 1) detail::fail(ErrorCode::config, kOp, "top_k", {"a number of at least 1"}, {top_k});
  const std::vector<std::int64_t> ids = prompt_ids(kOp, text, true);
  std::vector<NextToken> all;
  for (const TokenChoice& each : detail::likeliest_tokens(detail::next_logits(kOp, encoder(), ids), static_cast<std::size_t>(top_k)))
    all.push_back({each.id, id_to_token(each.id).value_or(""), decode({each.id}), each.logit, each.probability});
  return all;
}

ScoredText TextModel::score_tokens(const std::string& text) const {
  constexpr std::string_view kOp = "score_tokens";
  const std::vector<std::int64_t> ids = prompt_ids(kOp, text, true);
  const std::vector<detail::TokenScore> scores = detail::score_tokens(kOp, encoder(), ids);
  ScoredText result;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ScoredToken& token = result.tokens.emplace_back(ScoredToken{.id = ids[i], .token = id_to_token(ids[i]).value_or("")});
    if (i == 0) continue;
    const detail::TokenScore& score = scores[i - 1];
    token.log_probability = score.log_probability;
    token.entropy = score.entropy;
    token.rank = score.rank;
  }
  result.perplexity = detail::perplexity(scores);
  return result;
}

GeneratedText TextModel::generate(const std::string& prompt, const GenerateOptions& options) const {
  check_generate(options);
  const detail::ModelConfig& config = encoder().config();
  std::vector<std::int64_t> ids = prompt_ids(kGenerate, prompt, options.add_special_tokens);
  const std::int64_t before = std::ssize(ids), end = before + std::min(options.max_new_tokens, std::max<std::int64_t>(0, config.max_length - before));
  GeneratedText result;
  if (before == end) return result;
  KeyValueCache cache = encoder().make_cache(1, end);
  NewText text(*this, ids);
  for (std::uint64_t step = 0; std::ssize(ids) < end; ++step) {
    const std::span<const std::int64_t> next = std::span(ids).subspan(static_cast<std::size_t>(cache.length()));
    const TokenChoice choice = detail::choose_token(detail::next_logits(kGenerate, encoder(), next, &cache), ids, options.sampling, step);
    ids.push_back(choice.id);
    result.ids.push_back(choice.id);
    result.tokens.push_back(id_to_token(choice.id).value_or(""));
    const GeneratedToken token{.id = choice.id, .text = text.add(choice.id), .probability = choice.probability};
    const bool goes_on = !options.on_token || options.on_token(token);
    const std::size_t stop = find_stop(text.text(), options.stop);
    result.text = text.text().substr(0, stop);
    const bool ended = std::find(config.eos_token_ids.begin(), config.eos_token_ids.end(), choice.id) != config.eos_token_ids.end();
    if (stop != std::string::npos) return result.finish_reason = FinishReason::stop, result;
    if (ended) return result.finish_reason = FinishReason::eos, result;
    if (!goes_on) return result.finish_reason = FinishReason::aborted, result;
  }
  return result;
}

}  // namespace attn
