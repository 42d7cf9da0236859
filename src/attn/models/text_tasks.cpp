#include "attn/models/text_tasks.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "attn/io/tokenizer/sequences.hpp"
#include "attn/models/answers.hpp"
#include "attn/models/entities.hpp"
#include "attn/models/text_model_parts.hpp"

// web/lib/src/tasks/tasks.ts is the counterpart.
namespace attn {
namespace {

using detail::TokenSequence;

struct TextWindow {
  std::size_t index;
  std::vector<std::int32_t> ids, types;
  TokenSequence sequence = {};
  std::vector<std::int64_t> places = {};
  std::size_t number = 0;  ///< index among the windows of the text
};

void check_at_least(std::string_view op, std::string_view name, std::int64_t value, std::int64_t least) {
  if (value < least) detail::fail(ErrorCode::config, op, name, {"a number of at least ", least}, {value});
}

/// As transformers, guesses if the vocabulary does not mark words.
bool is_subword(const detail::TokenizerFile& file, std::string_view text, const TokenSequence& sequence, std::size_t place) {
  if (sequence.ids[place] == file.unk_id) return false;
  const auto start = static_cast<std::size_t>(sequence.starts[place]), end = static_cast<std::size_t>(sequence.ends[place]);
  if (file.marks_words) return detail::count_characters(sequence.tokens[place]) != detail::count_characters(text.substr(start, end - start));
  return start > 0 && text[start - 1] != ' ' && (start >= text.size() || text[start] != ' ');
}

/// Of equal scores the lower index; only those in `wanted` unless it is empty.
std::vector<std::size_t> largest(std::span<const float> scores, std::size_t count, const std::set<std::int64_t>& wanted) {
  std::vector<std::size_t> best;
  for (std::size_t id = 0; id < scores.size(); ++id)
    if (wanted.empty() || wanted.contains(static_cast<std::int64_t>(id))) best.push_back(id);
  const std::size_t kept = std::min(count, best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end(),
                    [&](std::size_t a, std::size_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
  best.resize(kept);
  return best;
}

/// The first token of a target that is not a token, as in transformers.
std::set<std::int64_t> target_ids(std::string_view op, const detail::TokenizerFile& file, const std::vector<std::string>& targets) {
  std::set<std::int64_t> wanted;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    std::optional<std::int32_t> id = file.token_to_id(targets[i]);
    if (!id) {
      const detail::TextTokens target = file.tokenize(detail::SourceText(targets[i]), i, 1);
      // The score of the unknown token would not be that of the target.
      if (!target.tokens.empty() && target.tokens.front().id != file.unk_id) id = target.tokens.front().id;
    }
    if (!id) detail::fail(ErrorCode::argument, op, detail::text({"targets[", i, "]"}), {"a token, or a text that begins with one"}, {targets[i]});
    wanted.insert(*id);
  }
  return wanted;
}

/// The padding id may also occur in a text.
bool is_padding(const detail::TokenizerFile& file, std::int64_t id) {
  return id == file.padding.id && file.id_to_token(file.padding.id) == file.padding.token;
}

detail::AnswerWindow answer_window(const TextWindow& window, std::span<const float> scores) {
  const TokenSequence& sequence = window.sequence;
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> words;
  detail::AnswerWindow made;
  const auto inside = [&](const auto& use) {
    for (std::size_t i = 0; i < window.places.size(); ++i)
      if (const auto place = static_cast<std::size_t>(window.places[i]); sequence.texts[place] == 1) use(i, place);
  };
  inside([&](std::size_t, std::size_t place) {
    words.try_emplace(sequence.words[place], sequence.starts[place], 0).first->second.second = sequence.ends[place];
  });
  inside([&](std::size_t i, std::size_t place) {
    made.start_scores.push_back(scores[2 * i]);
    made.end_scores.push_back(scores[2 * i + 1]);
    made.starts.push_back(words.at(sequence.words[place]).first);
    made.ends.push_back(words.at(sequence.words[place]).second);
  });
  if (!window.places.empty() && window.places.front() == 0) made.empty = scores[0] * scores[1];
  return made;
}

}  // namespace

struct TextModel::Windows {
  const TextModel& model;
  std::string_view op;
  Task task;

  const detail::TokenizerFile& file() const { return *model.parts_->own_tokenizer(op).file_; }
  template <class Sees>
  std::vector<TextWindow> of(std::span<const std::string> texts, std::size_t index, const detail::SequenceOptions& options, Sees sees) const {
    const detail::ModelConfig& config = model.parts_->model->config();
    if (options.max_length > config.max_length)
      detail::fail(ErrorCode::out_of_range, op, "max_length", {"a number of at most ", config.max_length}, {options.max_length},
                   "The model has no more positions");
    std::vector<TextWindow> windows;
    for (TokenSequence& sequence : detail::sequences(op, file(), texts, index, options)) {
      if (!config.token_types) std::fill(sequence.types.begin(), sequence.types.end(), 0);
      TextWindow window{.index = index, .ids = sequence.ids, .types = sequence.types, .sequence = std::move(sequence), .number = windows.size()};
      for (std::size_t place = 0; place < window.ids.size(); ++place)
        if (sees(window.sequence, place)) window.places.push_back(static_cast<std::int64_t>(place));
      windows.push_back(std::move(window));
    }
    return windows;
  }
  /// Calls use(window, scores) with one row of scores per place.
  template <class RowsOf, class Use>
  void run(std::size_t count, std::int64_t batch_size, const std::function<void(std::int64_t, std::int64_t)>& on_progress, RowsOf rows_of,
           detail::TokenSoftmax softmax, Use use) const {
    detail::check_batch_size(op, batch_size);
    const auto run_batch = [&](const detail::PackedSequences& batch, std::span<const TextWindow> rows) {
      std::vector<std::int64_t> places;
      std::int64_t start = 0;
      for (const TextWindow& row : rows) {
        for (const std::int64_t place : row.places) places.push_back(start + place);
        start += std::ssize(row.ids);
      }
      const Shape shape = model.encoder().check_tokens(op, task, batch.inputs(), places);
      std::vector<float> scores(static_cast<std::size_t>(shape[0] * shape[1]));
      model.encoder().classify_tokens(batch.inputs(), places, softmax, scores.data());
      std::span<const float> left = scores;
      for (const TextWindow& row : rows) {
        const std::size_t size = row.places.size() * static_cast<std::size_t>(shape[1]);
        use(row, left.first(size));
        left = left.subspan(size);
      }
    };
    detail::in_batches<TextWindow>(count, batch_size, on_progress, rows_of, run_batch);
  }
};

std::vector<std::vector<Entity>> TextModel::classify_tokens(const std::vector<std::string>& texts, const ClassifyTokensOptions& options) const {
  const Windows windows{*this, "classify_tokens", Task::token_classification};
  encoder().check_task(windows.op, windows.task);
  if (options.stride) check_at_least(windows.op, "stride", *options.stride, 0);
  if (options.stride && options.aggregation == Aggregation::none)
    detail::fail(ErrorCode::config, windows.op, "stride", {"no value"}, {*options.stride}, "With aggregation none a text is not read in windows");
  const detail::SequenceOptions how{options.max_length.value_or(max_length()), options.truncation, options.stride, options.add_special_tokens,
                                    options.truncation_side};
  const std::size_t classes = labels().size();
  std::vector<std::vector<std::vector<detail::ScoredToken>>> found(texts.size());
  if (options.truncated != nullptr) options.truncated->assign(texts.size(), false);
  const auto rows_of = [&](std::size_t i, std::vector<TextWindow>& rows) {
    for (TextWindow& window :
         windows.of({&texts[i], 1}, i, how, [](const TokenSequence& sequence, std::size_t place) { return sequence.texts[place] >= 0; })) {
      found[i].emplace_back();
      if (options.truncated != nullptr) (*options.truncated)[i] = window.sequence.truncated;
      if (!window.places.empty()) rows.push_back(std::move(window));
    }
  };
  windows.run(texts.size(), options.batch_size, options.on_progress, rows_of, detail::TokenSoftmax::outputs,
              [&](const TextWindow& window, std::span<const float> scores) {
                std::vector<detail::ScoredToken>& tokens = found[window.index][window.number];
                for (std::size_t i = 0; i < window.places.size(); ++i) {
                  const auto place = static_cast<std::size_t>(window.places[i]);
                  const std::span<const float> of_token = scores.subspan(i * classes, classes);
                  tokens.push_back({{of_token.begin(), of_token.end()},
                                    window.sequence.starts[place],
                                    window.sequence.ends[place],
                                    is_subword(windows.file(), texts[window.index], window.sequence, place)});
                }
              });
  std::vector<std::vector<Entity>> entities;
  for (std::size_t i = 0; i < texts.size(); ++i)
    entities.push_back(detail::entities_of(texts[i], found[i], labels(), options.aggregation, options.ignore_labels));
  return entities;
}

std::vector<std::vector<FilledMask>> TextModel::fill_mask(const std::string& text, const FillMaskOptions& options) const {
  return detail::naming_text("text", 0, [&] { return std::move(fill_mask_all({text}, options).front()); });
}

std::vector<std::vector<std::vector<FilledMask>>> TextModel::fill_mask_all(const std::vector<std::string>& texts,
                                                                           const FillMaskOptions& options) const {
  const Windows windows{*this, "fill_mask", Task::fill_mask};
  encoder().check_task(windows.op, windows.task);
  check_at_least(windows.op, "top_k", options.top_k, 1);
  const detail::TokenizerFile& file = windows.file();
  if (!file.mask_id) detail::fail(ErrorCode::unsupported, windows.op, "the tokenizer", {"one with a mask token"}, {"has none"});
  const std::set<std::int64_t> wanted = target_ids(windows.op, file, options.targets);
  const detail::SequenceOptions how{.max_length = encoder().config().max_length, .truncation = false};
  const auto rows_of = [&](std::size_t i, std::vector<TextWindow>& rows) {
    std::vector<TextWindow> made =
        windows.of({&texts[i], 1}, i, how, [&](const TokenSequence& sequence, std::size_t place) { return sequence.ids[place] == *file.mask_id; });
    if (made.front().places.empty()) {
      const std::string mask = mask_token().value_or("");
      detail::fail(ErrorCode::argument, windows.op, detail::text({"text ", i}), {"at least one"}, {"has no ", mask},
                   detail::text({"Insert ", mask, " where a word should be predicted"}));
    }
    rows.push_back(std::move(made.front()));
  };
  std::vector<std::vector<std::vector<FilledMask>>> filled(texts.size());
  const auto use = [&](const TextWindow& window, std::span<const float> scores) {
    const std::size_t masks = window.places.size(), size = scores.size() / masks;
    for (std::size_t i = 0; i < masks; ++i) {
      const std::span<const float> of_mask = scores.subspan(i * size, size);
      std::vector<FilledMask>& row = filled[window.index].emplace_back();
      for (const std::size_t id : largest(of_mask, static_cast<std::size_t>(options.top_k), wanted)) {
        std::vector<std::int64_t> ids(window.ids.begin(), window.ids.end());
        ids[static_cast<std::size_t>(window.places[i])] = static_cast<std::int64_t>(id);
        std::erase_if(ids, [&](std::int64_t each) { return is_padding(file, each); });
        // Other masks stay in the text, with all special tokens except padding.
        row.push_back({decode({static_cast<std::int64_t>(id)}), static_cast<std::int64_t>(id), of_mask[id], decode(ids, masks == 1)});
      }
    }
  };
  windows.run(texts.size(), options.batch_size, options.on_progress, rows_of, detail::TokenSoftmax::outputs, use);
  return filled;
}

std::vector<Answer> TextModel::answer(const std::string& question, const std::string& context, const AnswerOptions& options) const {
  return detail::naming_text("question or context", 0, [&] { return std::move(answer_all({{question, context}}, options).front()); });
}

std::vector<std::vector<Answer>> TextModel::answer_all(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                       const AnswerOptions& options) const {
  constexpr std::int64_t kMostTokens = 384, kStride = 128;  // as transformers
  const Windows windows{*this, "answer", Task::question_answering};
  encoder().check_task(windows.op, windows.task);
  for (const auto& [question, context] : pairs) {
    if (question.empty()) detail::fail(ErrorCode::argument, windows.op, "question", {"a question"}, {"empty"});
    if (context.empty()) detail::fail(ErrorCode::argument, windows.op, "context", {"a text"}, {"empty"});
  }
  check_at_least(windows.op, "top_k", options.top_k, 1);
  check_at_least(windows.op, "max_answer_length", options.max_answer_length, 1);
  const std::int64_t length = options.max_length.value_or(std::min(max_length(), kMostTokens)),
                     stride = options.stride.value_or(std::min(length / 2, kStride));
  check_at_least(windows.op, "max_length", length, 1);
  check_at_least(windows.op, "stride", stride, 0);
  const std::optional<std::int32_t> cls = windows.file().cls_id;
  std::vector<std::vector<detail::AnswerWindow>> found(pairs.size());
  const auto rows_of = [&](std::size_t i, std::vector<TextWindow>& rows) {
    const std::array<std::string, 2> texts{pairs[i].first, pairs[i].second};
    // [CLS] has the score of the empty answer.
    for (TextWindow& window : windows.of(texts, i, {.max_length = length, .stride = stride}, [&](const TokenSequence& sequence, std::size_t place) {
           return sequence.texts[place] == 1 || (sequence.texts[place] < 0 && sequence.ids[place] == cls);
         })) {
      found[i].emplace_back();
      rows.push_back(std::move(window));
    }
  };
  windows.run(pairs.size(), options.batch_size, options.on_progress, rows_of, detail::TokenSoftmax::tokens,
              [&](const TextWindow& window, std::span<const float> scores) { found[window.index][window.number] = answer_window(window, scores); });
  std::vector<std::vector<Answer>> answers;
  for (std::size_t i = 0; i < pairs.size(); ++i) answers.push_back(detail::answers_of(pairs[i].second, found[i], options));
  return answers;
}

std::vector<RankedDocument> TextModel::rank(const std::string& query, const std::vector<std::string>& documents, const RankOptions& options) const {
  constexpr std::string_view kOp = "rank";
  encoder().check_task(kOp, Task::text_classification);
  if (labels().size() != 1)
    detail::fail(ErrorCode::unsupported, kOp, "the head", {"one label, as a cross-encoder has"}, {labels().size(), " labels"},
                 "classify_pairs gives the scores of several labels");
  if (options.top_k) check_at_least(kOp, "top_k", *options.top_k, 1);
  std::vector<std::pair<std::string, std::string>> pairs;
  const std::string asked = parts_->prompt({.prompt = options.prompt, .prompt_name = options.prompt_name}, kOp) + query;
  for (const std::string& document : documents) pairs.emplace_back(asked, document);
  std::vector<bool> truncated;
  const auto scores = classify_pairs(pairs, {.max_length = options.max_length,
                                             .truncation = options.truncation,
                                             .batch_size = options.batch_size,
                                             .on_progress = options.on_progress,
                                             .add_special_tokens = options.add_special_tokens,
                                             .truncation_side = options.truncation_side,
                                             .truncated = &truncated});
  if (options.truncated != nullptr) *options.truncated = truncated;
  std::vector<RankedDocument> ranked;
  for (std::size_t i = 0; i < scores.size(); ++i) ranked.push_back({static_cast<std::int64_t>(i), scores[i].front().score, truncated[i]});
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedDocument& a, const RankedDocument& b) { return a.score > b.score; });
  if (options.top_k) ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(*options.top_k)));
  return ranked;
}

std::optional<std::string> TextModel::mask_token() const {
  const detail::TokenizerFile& file = *parts_->own_tokenizer("mask_token").file_;
  return file.mask_id ? id_to_token(*file.mask_id) : std::nullopt;
}

std::string TextModel::decode(const std::vector<std::int64_t>& ids, bool skip_special_tokens) const {
  const Tokenizer& tokenizer = parts_->own_tokenizer("decode");
  std::vector<std::int32_t> known;
  for (const std::int64_t id : ids)
    if (id >= 0 && id <= std::numeric_limits<std::int32_t>::max()) known.push_back(static_cast<std::int32_t>(id));
  return tokenizer.decode(known, skip_special_tokens);
}

}  // namespace attn
