#include <optional>
#include <string>
#include <utility>

#include "attn/models/family.hpp"
#include "encoder_forward.hpp"
#include "token_model.hpp"

namespace attn::bindings {

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
    arguments.list("denses", [&] {
      detail::ModelFiles::Dense& dense = files.denses.emplace_back();
      file("config", dense.config);
      file("weights", dense.weights, "a safetensors file");
    });
  });
  arguments.group("options", [&] { arguments.option("quantized", source.quantized); });
  return source;
}

namespace {

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

/// Facts as JSON, labels, notes, default prompt, each prompt's name and text.
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

detail::PackedSequences packed(Arguments& arguments) {
  detail::PackedSequences texts{.ids = arguments.labels("inputIds"), .types = arguments.labels("tokenTypeIds"), .runs = {}};
  for (const std::int64_t length : arguments.labels("lengths")) texts.add_length(length);
  return texts;
}

void model_forward(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  detail::ModelForwardOptions options;
  std::optional<Mask> mask;
  std::optional<std::int64_t> cache;
  arguments.group("options", [&] {
    arguments.option("mask", mask);
    arguments.option("isCausal", options.is_causal);
    common_options(arguments, options);
    constexpr std::array<std::string_view, 1> kRows{"last"};
    OutputLogits::Rows rows = OutputLogits::all;
    if (arguments.flag_or_word("outputLogits", rows, kRows)) options.logits = rows;
    cache = arguments.cache("cache");
  });
  work([&](TokenModel& self, Result& result) {
    detail::ModelForwardOptions given = options;
    given.mask = mask;
    if (cache) given.cache = &self.cache("TextModel", *cache);
    run(self.model(), batch.inputs(), self.model().plan("TextModel", batch.inputs(), given), result);
  });
}

/// Hidden states (…,E) to logits (…,V).
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

/// `index` is that of parameterShapes(). Returns the bytes as 32-bit words, then the scales of the rows.
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
    constexpr std::array<std::string_view, 8> kMethods{"embed", "classify", "classifyTokens", "fillMask", "answer", "forward", "forward", "forward"};
    const Shape shape = self.model().check_tokens(kMethods[static_cast<std::size_t>(task)], task, texts.inputs(), places);
    self.model().classify_tokens(texts.inputs(), places, softmax, result.add(shape));
  });
}

}  // namespace

void common_options(Arguments& arguments, detail::ModelForwardOptions& options) {
  arguments.option("outputAttentions", options.output_attentions);
  arguments.option("outputHiddenStates", options.output_hidden_states);
  options.head_mask = arguments.optional_tensor("headMask");
  arguments.list("patch", [&] {
    detail::ModelPatch& patch = options.patches.emplace_back();
    arguments.require("layer", patch.layer);
    patch.hidden_state = arguments.optional_tensor("hiddenState");
    patch.merged = arguments.optional_tensor("merged");
  });
  options.trace = trace_option(arguments);
}

void run(const EncoderModel& model, const detail::ModelInputs& inputs, const detail::ModelPlan& plan, Result& result) {
  const detail::EncoderBuffers buffers = allocate_results(plan.encoder, result);
  model.run(plan, inputs, buffers, plan.logits.rank() > 0 ? result.add(Field::logits, plan.logits) : nullptr);
}
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_text_model) {
  using namespace attn::bindings;
  TokenModelClass text_model("TextModel");
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
      .method<classify>("classify", "tensor")
      .method<classify_tokens>("classifyTokens", "tensor");
  define_generation(text_model);
  define_gradients(text_model);
  define_fine_tuning(text_model);
  define_images(text_model);
  // JavaScript keeps the model alive as long as this matrix.
  text_model.embind().function("wordEmbeddings", &TokenModel::word_embeddings, emscripten::return_value_policy::reference());
}
