#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "attn/io/json.hpp"
#include "attn/models/attribution.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/family.hpp"
#include "attn/models/fine_tuning.hpp"
#include "attn/models/language_model.hpp"
#include "attn/models/model_gradient.hpp"
#include "attn/models/model_loader.hpp"
#include "define.hpp"
#include "encoder_forward.hpp"

// The C++ part of TextModel in web/lib: everything except the tokenizer.
namespace attn::bindings {
namespace {

struct Source {
  detail::ModelFiles files;
  std::optional<bool> quantized;
};

class TokenModel {
 public:
  explicit TokenModel(const Source& source) : loader_(std::make_unique<detail::ModelLoader>(source.files, source.quantized)) {}

  void write(std::span<const std::uint8_t> bytes) { loader_->write(bytes); }
  void finish() {
    model_ = loader_->finish();
    loader_.reset();
  }
  const EncoderModel& model() const { return *model_; }
  EncoderModel& model() { return *model_; }
  Embedding* word_embeddings() { return &model_->word_embeddings(); }
  std::map<std::string, Shape> parameter_shapes() const { return model_->parameter_shapes(); }
  void load_state(const StateView& state, bool strict) { model_->load_state(state, strict); }
  const detail::ModelConfig& config() const { return model_ ? model_->config() : loader_->config(); }

  std::shared_ptr<detail::FineTuning> tuning;

  /// JavaScript numbers the caches.
  void add_cache(std::int64_t number, KeyValueCache cache) {
    caches_.push_back(std::make_unique<std::pair<std::int64_t, KeyValueCache>>(number, std::move(cache)));
  }
  void free_cache(std::int64_t number) {
    std::erase_if(caches_, [=](const auto& cache) { return cache->first == number; });
  }
  KeyValueCache& cache(std::string_view op, std::int64_t number) {
    for (const auto& cache : caches_)
      if (cache->first == number) return cache->second;
    detail::fail(ErrorCode::argument, op, "cache", {"one that createCache() of this model made"}, {"one of another model"});
  }

 private:
  std::unique_ptr<detail::ModelLoader> loader_;
  std::unique_ptr<EncoderModel> model_;
  std::vector<std::unique_ptr<std::pair<std::int64_t, KeyValueCache>>> caches_;
};

Source source(Arguments& arguments) {
  constexpr const char* kWhat = "a JSON file";
  Source source;
  detail::ModelFiles& files = source.files;
  arguments.require_group("files", [&] {
    files.config = arguments.bytes("config", kWhat);
    const auto file = [&](const char* name, detail::ModelFiles::File& to, const char* what = kWhat) {
      std::span<const std::uint8_t> bytes;
      if (arguments.option(name, bytes, what)) to = bytes;
    };
    file("modules", files.modules);
    file("pooling", files.pooling);
    file("sentenceBertConfig", files.sentence_bert_config);
    file("tokenizerConfig", files.tokenizer_config);
    file("prompts", files.prompts);
    file("generation", files.generation);
    file("dense", files.dense);
    file("denseWeights", files.dense_weights, "a safetensors file");
  });
  arguments.group("options", [&] { arguments.option("quantized", source.quantized); });
  return source;
}

void write(Arguments& arguments, Work<TokenModel> work) {
  const std::span<const std::uint8_t> bytes = arguments.bytes("bytes", "a piece of model.safetensors");
  work([&](TokenModel& self, Result&) { self.write(bytes); });
}

void finish(Arguments&, Work<TokenModel> work) {
  work([&](TokenModel& self, Result&) { self.finish(); });
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string list;
  for (const std::int64_t number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
  return list;
}

/// Returns facts as JSON, then the labels, the notes as lines, the default prompt, and each prompt's name and text.
void about(Arguments&, Work<TokenModel> work) {
  work([&](TokenModel& self, Result& result) {
    const detail::ModelConfig& config = self.config();
    std::vector<std::string> texts{detail::text({"{\"maxLength\":",
                                                 config.default_length,
                                                 ",\"positions\":",
                                                 config.max_length,
                                                 ",\"pooledSize\":",
                                                 config.embedding_size(1),
                                                 ",\"embeddingSize\":",
                                                 config.embedding_size(config.poolings.size()),
                                                 ",\"work\":",
                                                 config.num_hidden_layers * config.hidden_size * config.hidden_size,
                                                 ",\"lowerCase\":",
                                                 config.lower_case ? "true" : "false",
                                                 ",\"tokenTypes\":",
                                                 config.token_types ? "true" : "false",
                                                 ",\"includePrompt\":",
                                                 config.include_prompt ? "true" : "false",
                                                 ",\"causal\":",
                                                 config.is_causal ? "true" : "false",
                                                 ",\"quantized\":",
                                                 self.model().is_quantized() ? "true" : "false",
                                                 ",\"task\":\"",
                                                 name_of(config.task),
                                                 "\",\"tiedDecoder\":\"",
                                                 config.is_tied() ? config.head_names().classifier : std::string_view(),
                                                 "\",\"eos\":[",
                                                 list_of(config.eos_token_ids),
                                                 "],\"classes\":",
                                                 config.num_labels(),
                                                 "}"})};
    texts.insert(texts.end(), config.labels.begin(), config.labels.end());
    std::string notes;
    for (const std::string& note : config.notes) notes += (notes.empty() ? "" : "\n") + note;
    texts.push_back(std::move(notes));
    texts.push_back(config.default_prompt);
    for (const detail::Prompt& prompt : config.prompts) texts.insert(texts.end(), {prompt.name, prompt.text});
    result.add(std::move(texts));
  });
}

struct Batch {
  Arguments::Ids ids;
  std::optional<Mask> mask;
  std::optional<Arguments::Ids> types;

  explicit Batch(Arguments& arguments) : ids(arguments.ids("inputIds")) {
    arguments.option("attentionMask", mask);
    types = arguments.optional_ids("tokenTypeIds");
  }
  detail::ModelInputs inputs() const {
    detail::ModelInputs inputs{.shape = ids.shape, .input_ids = ids.values, .attention_mask = mask ? &*mask : nullptr};
    if (types) inputs.token_type_ids = types->values;
    return inputs;
  }
};

/// Reads texts without padding: their ids and types, and the number of ids of each text.
detail::PackedSequences packed(Arguments& arguments) {
  detail::PackedSequences texts{.ids = arguments.labels("inputIds"), .types = arguments.labels("tokenTypeIds"), .runs = {}};
  for (const std::int64_t length : arguments.labels("lengths")) texts.add_length(length);
  return texts;
}

void run(const EncoderModel& model, const Batch& batch, const detail::ModelPlan& plan, Result& result) {
  const detail::EncoderBuffers buffers = allocate_results(plan.encoder, result);
  model.run(plan, batch.inputs(), buffers, plan.logits.rank() > 0 ? result.add(Field::logits, plan.logits) : nullptr);
}

void model_forward(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  detail::ModelForwardOptions options;
  std::optional<Mask> mask;
  std::optional<std::int64_t> cache;
  arguments.group("options", [&] {
    arguments.option("mask", mask);
    arguments.option("isCausal", options.is_causal);
    arguments.option("outputAttentions", options.output_attentions);
    arguments.option("outputHiddenStates", options.output_hidden_states);
    constexpr std::array<std::string_view, 1> kRows{"last"};
    OutputLogits::Rows rows = OutputLogits::all;
    if (arguments.flag_or_word("outputLogits", rows, kRows)) options.logits = rows;
    options.head_mask = arguments.optional_tensor("headMask");
    std::int64_t layer = 0;
    const bool patched = arguments.group("patch", [&] {
      arguments.require("layer", layer);
      options.hidden_state = arguments.optional_tensor("hiddenState");
      options.merged = arguments.optional_tensor("merged");
    });
    if (patched) options.patched_layer = layer;
    options.trace = trace_option(arguments);
    cache = arguments.cache("cache");
  });
  work([&](TokenModel& self, Result& result) {
    detail::ModelForwardOptions given = options;
    given.mask = mask;
    if (cache) given.cache = &self.cache("TextModel", *cache);
    run(self.model(), batch, self.model().plan("TextModel", batch.inputs(), given), result);
  });
}

/// The number is the cache's maximum length.
void create_cache(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t number = 0, batch_size = 1;
  std::optional<std::int64_t> max_length;
  arguments.require("number", number);
  arguments.group("options", [&] {
    arguments.option("maxLength", max_length);
    arguments.option("batchSize", batch_size);
  });
  work([&](TokenModel& self, Result& result) {
    KeyValueCache cache = self.model().make_cache(batch_size, max_length.value_or(self.config().max_length));
    result.set_number(static_cast<double>(cache.max_length()));
    self.add_cache(number, std::move(cache));
  });
}

/// The number is the cache's length, to which the cache is truncated if it is given.
void cache_length(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t number = 0;
  std::optional<std::int64_t> length;
  arguments.require("number", number);
  arguments.option("length", length);
  work([&](TokenModel& self, Result& result) {
    KeyValueCache& cache = self.cache("length", number);
    if (length) cache.truncate(*length);
    result.set_number(static_cast<double>(cache.length()));
  });
}

void free_cache(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t number = 0;
  arguments.require("number", number);
  work([&](TokenModel& self, Result&) { self.free_cache(number); });
}

/// Adds id, logit and probability of each choice. Ids are exact in float32, because vocabularies have fewer than 2²⁴ tokens.
void add(std::span<const TokenChoice> choices, Result& result) {
  float* to = result.add({std::ssize(choices), 3});
  for (const TokenChoice& choice : choices)
    for (const float value : {static_cast<float>(choice.id), choice.logit, choice.probability}) *to++ = value;
}

/// Chooses the next token of a text: `inputIds` are all of its ids, of which the cache has the first.
void generate_token(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds");
  std::int64_t number = 0, step = 0;
  arguments.require("number", number);
  arguments.require("step", step);
  SamplingOptions options;
  arguments.group("options", [&] {
    arguments.option("doSample", options.do_sample);
    arguments.option("temperature", options.temperature);
    arguments.option("topK", options.top_k);
    arguments.option("topP", options.top_p);
    arguments.option("minP", options.min_p);
    arguments.option("repetitionPenalty", options.repetition_penalty);
    arguments.option("seed", options.seed);
  });
  work([&](TokenModel& self, Result& result) {
    detail::check_sampling("generate", options);
    KeyValueCache& cache = self.cache("generate", number);
    const std::span<const std::int64_t> next = std::span(ids).subspan(static_cast<std::size_t>(cache.length()));
    const std::vector<float> logits = detail::next_logits("generate", self.model(), next, &cache);
    const TokenChoice choice = detail::choose_token(logits, ids, options, static_cast<std::uint64_t>(step));
    add({&choice, 1}, result);
  });
}

void next_tokens(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds");
  std::int64_t top_k = 0;
  arguments.require("topK", top_k);
  work([&](TokenModel& self, Result& result) {
    add(detail::likeliest_tokens(detail::next_logits("nextToken", self.model(), ids), static_cast<std::size_t>(top_k)), result);
  });
}

/// Returns log probability, rank and entropy of each token but the first. The number is the perplexity.
void score_tokens(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds");
  work([&](TokenModel& self, Result& result) {
    const std::vector<detail::TokenScore> scores = detail::score_tokens("scoreTokens", self.model(), ids);
    result.set_number(detail::perplexity(scores));
    float* to = result.add({std::ssize(scores), 3});
    for (const detail::TokenScore& score : scores)
      for (const double value : {score.log_probability, static_cast<double>(score.rank), score.entropy}) *to++ = static_cast<float>(value);
  });
}

/// Applies the head to hidden states (…,E): logits (…,V).
void unembed(Arguments& arguments, Work<TokenModel> work) {
  const TensorView hidden = arguments.tensor("hiddenStates");
  work([&](TokenModel& self, Result& result) {
    const Shape logits = self.model().check_unembed("unembed", hidden.shape);
    const std::int64_t rows = checked_size(hidden.shape, "unembed", "hiddenStates") / self.config().hidden_size;
    self.model().run_head(hidden.data, rows, result.add(logits));
  });
}

void get_parameter(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t index = 0;
  arguments.require("index", index);
  work([&](TokenModel& self, Result& result) {
    const detail::StateTensor& tensor = std::next(self.model().tensors().begin(), static_cast<std::ptrdiff_t>(index))->second;
    tensor.get(result.add(tensor.shape()));
  });
}

void quantized_shapes(Arguments&, Work<TokenModel> work) {
  work([&](TokenModel& self, Result& result) {
    std::map<std::string, Shape> shapes;
    for (const auto& [name, tensor] : self.model().tensors())
      if (self.model().is_int8_in_files(tensor)) shapes.emplace(name, tensor.by_rows().shape());
    result.add(std::move(shapes));
  });
}

/// Returns an int8 tensor, by its index in parameterShapes(): its bytes as 32-bit words, and the scales of its rows.
void get_quantized(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t index = 0;
  arguments.require("index", index);
  work([&](TokenModel& self, Result& result) {
    const auto& [name, tensor] = *std::next(self.model().tensors().begin(), static_cast<std::ptrdiff_t>(index));
    const Shape shape = tensor.by_rows().shape();
    auto* const bytes = reinterpret_cast<std::int8_t*>(result.add({(shape[0] * shape[1] + 3) / 4}));
    tensor.get_quantized("export", name, bytes, result.add({shape[0]}));
  });
}

void trace_layer(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  std::int64_t layer = 0;
  arguments.require("layer", layer);
  Trace names = Trace::all();
  arguments.option("names", names, kTraceNames);
  work([&](TokenModel& self, Result& result) {
    const detail::ModelPlan plan = self.model().plan("traceLayer", batch.inputs(), {.trace = self.model().trace_of("traceLayer", layer, names)});
    std::vector<float> output(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
    detail::EncoderBuffers buffers{output.data(), {}, std::vector<detail::LayerBuffers>(static_cast<std::size_t>(plan.encoder.layers))};
    for (std::size_t i = 0; i < kTraceNames.size(); ++i)
      if (plan.encoder.names.has(static_cast<TraceName>(i)))
        buffers.layers[static_cast<std::size_t>(layer)].trace[i] =
            result.add(Field::trace, plan.encoder.trace_shapes[i], 0, static_cast<std::int32_t>(i));
    self.model().run(plan, batch.inputs(), buffers, nullptr);
  });
}

void embed(Arguments& arguments, Work<TokenModel> work) {
  detail::PackedSequences texts = packed(arguments);
  std::optional<bool> normalize;
  detail::ModelEmbedOptions options;
  arguments.group("options", [&] {
    Pooling given = Pooling::none;
    if (arguments.option("pooling", given, kPoolingNames)) options.poolings = {given};
    arguments.option("normalize", normalize);
    arguments.option("promptLength", options.prompt_length);
  });
  work([&](TokenModel& self, Result& result) {
    const EncoderModel& model = self.model();
    detail::ModelEmbedOptions given = options;
    if (given.poolings.empty()) given.poolings = model.config().poolings;
    given.normalize = normalize.value_or(model.config().normalize);
    given.normalize_kept = normalize.value_or(false);
    model.embed(texts.inputs(), given, result.add(model.check_embed("embed", texts.inputs(), given)));
  });
}

void classify(Arguments& arguments, Work<TokenModel> work) {
  detail::PackedSequences texts = packed(arguments);
  bool are_pairs = true;
  arguments.option("pairs", are_pairs);
  work([&](TokenModel& self, Result& result) {
    const Shape shape = self.model().check_classify("classify", texts.inputs());
    self.model().classify(texts.inputs(), result.add(shape), are_pairs);
  });
}

void classify_tokens(Arguments& arguments, Work<TokenModel> work) {
  detail::PackedSequences texts = packed(arguments);
  std::vector<std::int64_t> places;
  arguments.option("places", places);
  Task task = Task::token_classification;
  arguments.require("task", task, kTaskNames);
  detail::TokenSoftmax softmax = detail::TokenSoftmax::none;
  arguments.require("softmax", softmax, detail::kTokenSoftmaxNames);
  work([&](TokenModel& self, Result& result) {
    constexpr std::array<std::string_view, 7> kMethods{"embed", "classify", "classifyTokens", "fillMask", "answer", "forward", "forward"};
    const Shape shape = self.model().check_tokens(kMethods[static_cast<std::size_t>(task)], task, texts.inputs(), places);
    self.model().classify_tokens(texts.inputs(), places, softmax, result.add(shape));
  });
}

/// Gradients of one number with respect to the output of the embeddings, the attentions and traces by layer and the parameters
/// by name; also that number.
void gradients(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  detail::ModelGradientTarget target;
  arguments.require_group("target", [&] {
    arguments.option("label", target.label);
    arguments.option("component", target.component);
    arguments.option("token", target.token);
    arguments.option("row", target.row);
    arguments.option("contrast", target.contrast);
  });
  bool embeddings = false, attentions = false, parameters = false;
  arguments.require_group("wrt", [&] {
    arguments.option("embeddings", embeddings);
    arguments.option("attentions", attentions);
    arguments.option("parameters", parameters);
  });
  std::optional<EncoderTraceOptions> trace = trace_option(arguments);
  work([&](TokenModel& self, Result& result) {
    const detail::ModelGradient gradient("gradients", self.model(), batch.inputs(), target, embeddings, attentions, parameters, trace);
    result.set_number(static_cast<double>(gradient.value()));
    float* const of_embeddings = embeddings ? result.add(gradient.embeddings()) : nullptr;
    std::vector<float*> of_attentions;
    if (attentions)
      for (std::size_t layer = 0; layer < gradient.layers(); ++layer)
        of_attentions.push_back(result.add(Field::attentions, gradient.attentions(), static_cast<std::int32_t>(layer)));
    StateTarget of_parameters;
    if (parameters)
      for (const auto& [name, shape] : self.parameter_shapes()) of_parameters.emplace(name, result.add(name, shape));
    std::vector<detail::TraceBuffers> of_traces;
    if (trace) {
      detail::EncoderBuffers buffers{nullptr, {}, std::vector<detail::LayerBuffers>(gradient.layers())};
      add_traces(gradient.traced(), buffers, result);
      for (const detail::LayerBuffers& layer : buffers.layers) of_traces.push_back(layer.trace);
    }
    gradient.run(of_embeddings, of_attentions, parameters ? &of_parameters : nullptr, std::move(of_traces));
  });
}

/// Computes one portion of attribute(): scores of tokens, f of the text and of the baseline, and the number of
/// portions.
void attribute(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds"), types = arguments.labels("tokenTypeIds"), special = arguments.labels("special");
  detail::AttributionCall call;
  arguments.require("padId", call.pad_id);
  arguments.require("method", call.method, kAttributionMethodNames);
  arguments.require("target", call.target);
  arguments.require("steps", call.steps);
  std::int64_t portion = 0;
  arguments.require("portion", portion);
  work([&](TokenModel& self, Result& result) {
    const std::vector<std::uint8_t> flags(special.begin(), special.end());
    detail::AttributionCall given = call;
    given.ids = ids;
    given.types = types;
    given.special = flags;
    const detail::Attribution attribution("attribute", self.model(), given);
    result.set_number(static_cast<double>(attribution.portions()));
    float* const scores = result.add("scores", Shape{static_cast<std::int64_t>(ids.size())});
    attribution.run(portion, scores, result.add("values", Shape{2}));
  });
}

std::vector<double> targets_of(const TensorView& given) { return {given.data, given.data + given.shape[0]}; }

/// Begins a run, with a new head if labels are given. All targets are checked before anything changes. The name in
/// the result is the class name in transformers.
void begin_fine_tuning(Arguments& arguments, Work<TokenModel> work) {
  const TensorView targets = arguments.tensor("targets");
  std::span<const std::uint8_t> labels;
  arguments.option("labels", labels, "a list in JSON");
  detail::FineTuningOptions options;
  arguments.require_group("options", [&] {
    arguments.require("steps", options.steps);
    arguments.require("learningRate", options.learning_rate);
    arguments.require("weightDecay", options.weight_decay);
    arguments.option("layers", options.layers);
    arguments.option("seed", options.seed);
  });
  work([&](TokenModel& self, Result& result) {
    constexpr std::string_view kOp = "fineTune";
    const detail::ModelConfig& config = self.config();
    std::vector<std::string> names;
    if (!labels.empty()) {
      const detail::Json list = detail::parse_json("labels", labels, labels.size());
      for (const detail::Json& name : *list.array()) names.push_back(*name.string());
    }
    const bool is_new = !names.empty();
    const std::int64_t count = is_new ? std::ssize(names) : config.num_labels();
    const detail::HeadLoss loss = detail::check_fine_tuning(kOp, self.model(), options, is_new ? std::optional<std::int64_t>(count) : std::nullopt);
    detail::check_targets(kOp, targets_of(targets), count, loss);
    if (is_new) self.model().set_head(std::move(names), options.seed);
    self.tuning = std::make_shared<detail::FineTuning>(kOp, self.model(), options);
    *result.add(config.family->architecture, Shape{1}) = 0;
  });
}

void end_fine_tuning(Arguments&, Work<TokenModel> work) {
  work([&](TokenModel& self, Result&) { self.tuning.reset(); });
}

void training_order(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t count = 0, epoch = 0;
  std::uint64_t seed = 0;
  arguments.require("count", count);
  arguments.require("epoch", epoch);
  arguments.option("seed", seed);
  work([&](TokenModel&, Result& result) {
    float* to = result.add(Shape{count});
    for (const std::size_t place : detail::training_order(static_cast<std::size_t>(count), seed, static_cast<std::uint32_t>(epoch)))
      *to++ = static_cast<float>(place);
  });
}

void fine_tune_step(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  const TensorView targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) { result.set_number(self.tuning->step(batch.inputs(), targets_of(targets))); });
}

void fine_tune_head_step(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pooled = arguments.tensor("pooled"), targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) {
    const std::span values(pooled.data, static_cast<std::size_t>(pooled.shape[0] * pooled.shape[1]));
    result.set_number(self.tuning->step(values, targets_of(targets)));
  });
}

void pool_for_head(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  work(
      [&](TokenModel& self, Result& result) { self.tuning->pool(batch.inputs(), result.add(Shape{batch.ids.shape[0], self.config().hidden_size})); });
}

/// The number is the loss, which is the only result for a regression.
void add(const detail::Judgement& judgement, Result& result) {
  result.set_number(judgement.loss);
  if (judgement.right) *result.add("right", Shape{1}) = static_cast<float>(*judgement.right);
}

void judge(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  const TensorView targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) { add(self.tuning->judge(batch.inputs(), targets_of(targets)), result); });
}

void judge_head(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pooled = arguments.tensor("pooled"), targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) {
    const std::span values(pooled.data, static_cast<std::size_t>(pooled.shape[0] * pooled.shape[1]));
    add(self.tuning->judge(values, targets_of(targets)), result);
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_text_model) {
  using namespace attn::bindings;
  Class<TokenModel, source> text_model("TextModel");
  text_model.method<write>("write", "none")
      .method<finish>("finish", "none")
      .method<about>("about", "about")
      .method<model_forward>("forward", "text_model")
      .method<trace_layer>("traceLayer", "trace")
      .method<module::load_state_dict<TokenModel>>("loadStateDict", "none")
      .method<module::parameter_shapes<TokenModel>>("parameterShapes", "shapes")
      .method<unembed>("unembed", "tensor")
      .method<get_parameter>("getParameter", "tensor")
      .method<quantized_shapes>("quantizedShapes", "shapes")
      .method<get_quantized>("getQuantized", "quantized")
      .method<embed>("embed", "tensor")
      .method<create_cache>("createCache", "number")
      .method<cache_length>("cacheLength", "number")
      .method<free_cache>("freeCache", "none")
      .method<generate_token>("generateToken", "tensor")
      .method<next_tokens>("nextTokens", "tensor")
      .method<score_tokens>("scoreTokens", "raw")
      .method<classify>("classify", "tensor")
      .method<classify_tokens>("classifyTokens", "tensor")
      .method<gradients>("gradients", "raw")
      .method<attribute>("attribute", "raw")
      .method<begin_fine_tuning>("beginFineTuning", "raw")
      .method<end_fine_tuning>("endFineTuning", "none")
      .method<training_order>("trainingOrder", "raw")
      .method<fine_tune_step>("fineTuneStep", "raw")
      .method<fine_tune_head_step>("fineTuneHeadStep", "raw")
      .method<pool_for_head>("poolForHead", "raw")
      .method<judge>("judge", "raw")
      .method<judge_head>("judgeHead", "raw");
  // JavaScript keeps the model alive as long as its embedding matrix, and frees only the model.
  text_model.embind().function("wordEmbeddings", &TokenModel::word_embeddings, emscripten::return_value_policy::reference());
}
