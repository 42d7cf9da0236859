#include "attn/models/lens_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn/models/family.hpp"
#include "attn/models/text_model_parts.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

/// Others may scale or cap values that the lens takes as they are.
constexpr std::array kTested{&kGpt2, &kLlama, &kMistral, &kQwen2, &kQwen3};

/// Logits take more memory than hidden states.
constexpr std::size_t kRowsAtOnce = 16;

}  // namespace

LensModel::LensModel(std::string_view op, const TextModel& text) : op_(op), text_(text), model_(*text.parts_->model) {}

void LensModel::check_decoder() const {
  model_.check_task(op_, Task::text_generation);
  if (std::find(kTested.begin(), kTested.end(), config().family) != kTested.end()) return;
  std::string known;
  for (const Family* family : kTested) known += (known.empty() ? "" : ", ") + std::string(family->model_types.front());
  fail(ErrorCode::unsupported, op_, "the model_type", {"one of ", known}, {config().family->model_types.front()});
}

LensTokens LensModel::tokens(const lens::Text& text, const char* argument) const {
  LensTokens result;
  if (const auto* const ids = std::get_if<std::vector<std::int64_t>>(&text)) {
    result.ids = *ids;
  } else {
    const TokenizeOptions options{.max_length = config().max_length, .truncation = false};
    const EncodedTexts encoding = naming_text(argument, 0, [&] { return text_.encode(std::vector{std::get<std::string>(text)}, 0, 1, options); });
    result.ids.assign(encoding.input_ids.begin(), encoding.input_ids.end());
  }
  if (result.ids.empty()) fail(ErrorCode::argument, op_, argument, {"at least one token"}, {"none"});
  result.tokens = spelled(result.ids);
  return result;
}

std::vector<std::int64_t> LensModel::special_ids() const {
  const EncodedTexts encoding = text_.encode(std::vector{std::string()}, 0, 1, {});
  return {encoding.input_ids.begin(), encoding.input_ids.end()};
}

std::string LensModel::spelled(std::int64_t id) const { return text_.id_to_token(id).value_or(""); }

std::vector<std::string> LensModel::spelled(std::span<const std::int64_t> ids) const {
  std::vector<std::string> all;
  for (const std::int64_t id : ids) all.push_back(spelled(id));
  return all;
}

std::int64_t LensModel::token(const char* argument, const lens::Token& token) const {
  if (const auto* const id = std::get_if<std::int64_t>(&token)) {
    if (*id < 0 || *id >= config().vocab_size)
      fail(ErrorCode::out_of_range, op_, argument, {"the id of a token from 0 to ", config().vocab_size - 1}, {*id});
    return *id;
  }
  const auto& text = std::get<std::string>(token);
  std::optional<std::int64_t> id = text_.token_to_id(text);
  // The tokenizers of Llama 2 and Mistral prepend a space, so " Paris" would be two tokens.
  if (!id && text.starts_with(' ')) id = text_.token_to_id("\u2581" + text.substr(1));
  if (!id) {
    const EncodedTexts encoding =
        naming_text(argument, 0, [&] { return text_.encode(std::vector{text}, 0, 1, TokenizeOptions{.add_special_tokens = false}); });
    if (encoding.input_ids.size() != 1)
      fail(ErrorCode::out_of_range, op_, argument, {"a text that is a single token"}, {text, ", which has ", encoding.input_ids.size(), " tokens"});
    id = encoding.input_ids[0];
  }
  return this->token(argument, lens::Token(*id));
}

std::optional<std::int64_t> LensModel::token(const char* argument, const std::optional<lens::Token>& token) const {
  return token ? std::optional(this->token(argument, *token)) : std::nullopt;
}

std::vector<std::int64_t> LensModel::indices(const char* argument, const std::optional<std::vector<std::int64_t>>& given, std::int64_t count) const {
  std::vector<std::int64_t> all;
  if (!given)
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
  else
    for (std::size_t i = 0; i < given->size(); ++i) all.push_back(index(text({argument, "[", i, "]"}).c_str(), (*given)[i], count));
  return all;
}

std::int64_t LensModel::index(const char* argument, std::optional<std::int64_t> given, std::int64_t count) const {
  const std::int64_t value = given.value_or(count - 1);
  if (value < 0 || value >= count) fail(ErrorCode::out_of_range, op_, argument, {"a number from 0 to ", count - 1}, {value});
  return value;
}

LensRun LensModel::run(std::span<const std::int64_t> ids, std::int64_t sequences, ModelForwardOptions options) const {
  options.logits = false;
  const ModelInputs inputs{.shape = {sequences, std::ssize(ids) / sequences}, .input_ids = ids};
  const ModelPlan of_model = model_.plan(op_, inputs, options);
  const EncoderPlan& plan = of_model.encoder;
  LensRun result;
  const auto make = [](const Shape& shape) { return std::vector<float>(static_cast<std::size_t>(checked_size(shape, "attn", "a result"))); };
  result.output = make(plan.output);
  EncoderBuffers buffers{result.output.data(), {}, {}};
  if (plan.has_hidden_states)
    for (std::size_t i = 0; i <= layers(); ++i) buffers.hidden_states.push_back(result.hidden_states.emplace_back(make(plan.output)).data());
  if (plan.has_attentions || plan.has_trace) buffers.layers.resize(layers());
  if (plan.has_attentions)
    for (LayerBuffers& layer : buffers.layers) layer.attentions = result.attentions.emplace_back(make(plan.attention.weights)).data();
  if (plan.has_trace) result.traces.resize(layers());
  for (const std::int64_t layer : plan.traced)
    for (std::size_t name = 0; name < kTraceNames.size(); ++name)
      if (plan.names.has(static_cast<TraceName>(name)))
        buffers.layers[static_cast<std::size_t>(layer)].trace[name] =
            (result.traces[static_cast<std::size_t>(layer)][name] = make(plan.trace_shapes[name])).data();
  model_.run(of_model, inputs, buffers, nullptr);
  return result;
}

void LensModel::each_row_of_logits(std::span<const float> rows, const std::function<void(std::span<const float>, std::size_t)>& use) const {
  const std::size_t E = width(), count = rows.size() / E;
  const Shape most{static_cast<std::int64_t>(std::min(count, kRowsAtOnce)), config().hidden_size};
  const Shape shape = model_.check_unembed(op_, most);
  const auto V = static_cast<std::size_t>(shape[1]);
  std::vector<float> logits(static_cast<std::size_t>(shape[0]) * V);
  for (std::size_t first = 0; first < count; first += kRowsAtOnce) {
    const std::size_t some = std::min(kRowsAtOnce, count - first);
    model_.run_head(rows.data() + first * E, static_cast<std::int64_t>(some), logits.data());
    for (std::size_t i = 0; i < some; ++i) {
      const std::span<const float> row = row_of(logits, i, V);
      check_logits(op_, row);
      use(row, first + i);
    }
  }
}

NormMoments::NormMoments(const ModelConfig& config, std::span<const float> row) {
  const auto width = static_cast<double>(row.size());
  for (const float value : row) mean += config.norm == NormKind::rms_norm ? 0 : static_cast<double>(value) / width;
  double square = 0;
  for (const float value : row) square += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean) / width;
  divisor = std::sqrt(square + static_cast<double>(config.layer_norm_eps));
}

void LensModel::final_norm(std::span<float> rows) const {
  const FloatEnvironment environment;
  const std::vector<float> gain = parameter("encoder.norm.weight"), shift = parameter("encoder.norm.bias");
  for (std::size_t first = 0; first < rows.size(); first += width()) {
    const std::span<float> row = rows.subspan(first, width());
    const NormMoments moments(config(), row);
    for (std::size_t e = 0; e < row.size(); ++e) {
      const double normed = (static_cast<double>(row[e]) - moments.mean) / moments.divisor * static_cast<double>(gain[e]);
      row[e] = static_cast<float>(normed + (shift.empty() ? 0 : static_cast<double>(shift[e])));
    }
  }
}

const ParameterRef* LensModel::find(const std::string& name) const {
  for (const auto& [in_file, tensor] : model_.tensors())
    for (const ParameterRef& piece : tensor.pieces)
      if (piece.name == name) return &piece;
  return nullptr;
}

std::vector<float> LensModel::parameter(const std::string& name) const {
  const ParameterRef* const found = find(name);
  std::vector<float> values(found != nullptr ? found->size() : 0);
  if (found != nullptr) found->get(values.data());
  return values;
}

std::vector<float> LensModel::unembedding(std::int64_t id) const {
  if (config().is_tied()) return model_.word_embeddings().row(id);
  std::vector<float> row(width());
  find("classifier.weight")->get_row(static_cast<std::size_t>(id), row.data());
  return row;
}

}  // namespace attn::detail
