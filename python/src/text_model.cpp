#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"
#include "texts.hpp"
#include "tokenizer.hpp"

namespace attn::python {
namespace {

using Model = Shared<TextModel>;
using EncodingResult = Typed<"attn.Encoding">;
using Ids = Typed<"attn.Encoding | numpy.typing.ArrayLike">;
using Label = std::variant<std::int64_t, std::string>;
using TaskName = Word<kTaskNames>;
using Done = Typed<"collections.abc.Callable[[int, int], object]">;

constexpr std::array<std::string_view, 2> kWeightsNames{"float32", "int8"};
constexpr std::array<std::string_view, 3> kFileWeightsNames{"float32", "float16", "int8"};

/// Calls a function of Python's with how much is done, and lets the interpreter act on signals.
std::function<void(std::int64_t, std::int64_t)> progress_of(const Done& on_progress) {
  if (on_progress.is_none()) return [signals = Signals()](std::int64_t, std::int64_t) mutable { signals.check(); };
  // Borrowed: the call outlives it, and copies of the function are made without the interpreter's lock.
  return [f = nb::handle(on_progress), signals = Signals()](std::int64_t done, std::int64_t total) mutable {
    {
      const Locked locked;
      f(done, total);
    }
    signals.check();
  };
}

/// Token ids of a call: an Encoding, or arrays of whole numbers.
EncodingTensors<2> encoding_of(const char* op, const Ids& input_ids, const MaybeArrayLike& attention_mask, const MaybeArrayLike& token_type_ids) {
  EncodingTensors<2> encoding;
  nb::object ids = input_ids, mask = attention_mask, types = token_type_ids;
  if (nb::hasattr(input_ids, "input_ids")) {
    ids = input_ids.attr("input_ids");
    if (mask.is_none()) mask = input_ids.attr("attention_mask");
    if (types.is_none()) types = nb::getattr(input_ids, "token_type_ids", nb::none());
  }
  encoding.input_ids = ids_of(ids, op, "input_ids");
  if (!mask.is_none()) encoding.attention_mask = flags_of(mask, op, "attention_mask");
  if (!types.is_none()) encoding.token_type_ids = ids_of(types, op, "token_type_ids");
  return encoding;
}

/// Where entities or answers are.
template <class Part>
TokenOffsets offsets_of(const std::vector<Part>& parts) {
  TokenOffsets offsets;
  for (const Part& part : parts) offsets.emplace_back(std::pair(part.start, part.end));
  return offsets;
}

/// Numbers, or None, of each text's tokens.
nb::list numbers_of(const std::vector<std::vector<std::optional<std::int32_t>>>& texts) {
  nb::list all;
  for (const auto& text : texts) {
    nb::list of_text;
    for (const auto& number : text) of_text.append(number ? nb::object(nb::int_(*number)) : nb::none());
    all.append(of_text);
  }
  return all;
}

/// `places(i)` are those of text number i.
template <class Places>
EncodingResult encoding_result(const EncodingTensors<2>& encoding, Places places) {
  nb::list offsets;
  for (std::size_t i = 0; i < encoding.offsets.size(); ++i) offsets.append(places(i));
  const nb::object words = encoding.words.empty() ? nb::none() : nb::object(numbers_of(encoding.words));
  return make_result("Encoding", to_python(encoding.input_ids), to_python(encoding.attention_mask), to_python(encoding.token_type_ids),
                     to_python(encoding.tokens), offsets, numbers_of(encoding.sequence_ids), nb::cast(encoding.truncated), words);
}

TokenizeOptions tokenize_options(const char* op, std::optional<std::int64_t> max_length, bool truncation, bool add_special_tokens,
                                 const Word<kSideNames>& truncation_side, const Word<kSideNames>& padding_side) {
  return {.max_length = max_length,
          .truncation = truncation,
          .add_special_tokens = add_special_tokens,
          .truncation_side = maybe_word_of<Side>(truncation_side, op, "truncation_side"),
          .padding_side = maybe_word_of<Side>(padding_side, op, "padding_side")};
}

EncodingResult tokenize(const Model& self, const Texts& given, std::optional<std::int64_t> max_length, bool truncation, bool add_special_tokens,
                        const Word<kSideNames>& truncation_side, const Word<kSideNames>& padding_side) {
  constexpr const char* kOp = "tokenize";
  const GivenTexts texts(given, kOp);
  const TokenizeOptions options = tokenize_options(kOp, max_length, truncation, add_special_tokens, truncation_side, padding_side);
  const EncodingTensors<2> encoding = self.read(kOp, [&](const TextModel& model) {
    return texts.are_pairs ? model.tokenize_pairs(texts.pairs, options) : model.tokenize(texts.texts, options);
  });
  return encoding_result(encoding, [&](std::size_t i) { return texts.places(i, encoding.offsets[i], encoding.sequence_ids[i]); });
}

EncodingResult tokenize_words(const Model& self, const WordLists& given, std::optional<std::int64_t> max_length, bool truncation,
                              bool add_special_tokens, const Word<kSideNames>& truncation_side, const Word<kSideNames>& padding_side) {
  constexpr const char* kOp = "tokenize_words";
  const GivenWords words(given, kOp);
  const TokenizeOptions options = tokenize_options(kOp, max_length, truncation, add_special_tokens, truncation_side, padding_side);
  const EncodingTensors<2> encoding = self.read(kOp, [&](const TextModel& model) {
    return words.are_pairs ? model.tokenize_word_pairs(words.pairs, options) : model.tokenize_words(words.lists, options);
  });
  return encoding_result(encoding, [&](std::size_t i) { return words.places(i, encoding.offsets[i], encoding.sequence_ids[i], encoding.words[i]); });
}

Typed<"attn.TextModelOutput"> forward(const Model& self, const Ids& input_ids, const MaybeArrayLike& attention_mask,
                                      const MaybeArrayLike& token_type_ids, bool output_attentions, bool output_hidden_states, const MaybeMask& mask,
                                      bool is_causal, const MaybeArrayLike& head_mask, const std::optional<LayerPatch>& patch,
                                      const TraceNames& trace, const std::optional<std::vector<std::int64_t>>& trace_layers) {
  constexpr const char* kOp = "TextModel";
  const EncodingTensors<2> inputs = encoding_of(kOp, input_ids, attention_mask, token_type_ids);
  TextForwardOptions options{.output_attentions = output_attentions,
                             .output_hidden_states = output_hidden_states,
                             .mask = mask_of(mask, kOp, "mask"),
                             .is_causal = is_causal,
                             .patch = patch,
                             .trace = trace_of(trace, trace_layers, kOp)};
  if (!head_mask.is_none()) options.head_mask = TensorCopy(Floats(head_mask, kOp, "head_mask"));
  const TextModelOutput output = self.read(kOp, [&](const TextModel& model) { return model.forward(inputs, options); });
  return make_result("TextModelOutput", to_python(output.last_hidden_state), to_python(output.logits), to_python(output.attentions),
                     to_python(output.hidden_states), to_python(output.trace));
}

FloatArray embed(const Model& self, const SingleTexts& given, std::optional<std::int64_t> max_length, bool truncation,
                 const Word<kPoolingNames>& pooling, std::optional<bool> normalize, std::int64_t batch_size, const std::optional<std::string>& prompt,
                 const std::optional<std::string>& prompt_name, const Done& on_progress) {
  constexpr const char* kOp = "embed";
  const GivenTexts texts(given, kOp, false);
  const EmbedOptions options{.max_length = max_length,
                             .truncation = truncation,
                             .pooling = maybe_word_of<Pooling>(pooling, kOp, "pooling"),
                             .normalize = normalize,
                             .batch_size = batch_size,
                             .prompt = prompt,
                             .prompt_name = prompt_name,
                             .on_progress = progress_of(on_progress)};
  return to_python(self.read(kOp, [&](const TextModel& model) { return model.embed(texts.texts, options); }));
}

Typed<"list[list[attn.LabelScore]]"> classify(const Model& self, const Texts& given, std::optional<std::int64_t> max_length, bool truncation,
                                              std::int64_t batch_size, const Done& on_progress) {
  constexpr const char* kOp = "classify";
  const GivenTexts texts(given, kOp);
  const ClassifyOptions options{
      .max_length = max_length, .truncation = truncation, .batch_size = batch_size, .on_progress = progress_of(on_progress)};
  const auto scores = self.read(kOp, [&](const TextModel& model) {
    return texts.are_pairs ? model.classify_pairs(texts.pairs, options) : model.classify(texts.texts, options);
  });
  nb::list all;
  for (const std::vector<LabelScore>& of_text : scores) {
    nb::list list;
    for (const LabelScore& each : of_text) list.append(make_result("LabelScore", each.label, each.score));
    all.append(list);
  }
  return all;
}

Typed<"list[list[attn.Entity]]"> classify_tokens(const Model& self, const SingleTexts& given, const Word<kAggregationNames>& aggregation,
                                                 std::optional<std::int64_t> stride, std::vector<std::string> ignore_labels,
                                                 std::optional<std::int64_t> max_length, bool truncation, std::int64_t batch_size,
                                                 const Done& on_progress) {
  constexpr const char* kOp = "classify_tokens";
  const GivenTexts texts(given, kOp, false);
  const ClassifyTokensOptions options{.max_length = max_length,
                                      .truncation = truncation,
                                      .aggregation = word_of<Aggregation>(aggregation, kOp, "aggregation"),
                                      .stride = stride,
                                      .ignore_labels = std::move(ignore_labels),
                                      .batch_size = batch_size,
                                      .on_progress = progress_of(on_progress)};
  const auto found = self.read(kOp, [&](const TextModel& model) { return model.classify_tokens(texts.texts, options); });
  nb::list all;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const nb::list counted = places(texts.texts[i], offsets_of(found[i]));
    nb::list list;
    for (std::size_t j = 0; j < found[i].size(); ++j)
      list.append(make_result("Entity", found[i][j].label, found[i][j].score, found[i][j].text, counted[j][0], counted[j][1]));
    all.append(list);
  }
  return all;
}

Typed<"list[list[attn.FilledMask]]"> fill_mask(const Model& self, const std::string& text, std::int64_t top_k,
                                               std::optional<std::vector<std::string>> targets) {
  const FillMaskOptions options{.top_k = top_k, .targets = std::move(targets).value_or(std::vector<std::string>())};
  nb::list all;
  for (const std::vector<FilledMask>& of_mask : self.read("fill_mask", [&](const TextModel& model) { return model.fill_mask(text, options); })) {
    nb::list list;
    for (const FilledMask& each : of_mask) list.append(make_result("FilledMask", each.token, each.id, each.score, each.text));
    all.append(list);
  }
  return all;
}

Typed<"list[attn.Answer]"> answer(const Model& self, const std::string& question, const std::string& context, std::int64_t top_k,
                                  std::int64_t max_answer_length, std::optional<std::int64_t> stride, bool allow_empty) {
  const AnswerOptions options{.top_k = top_k, .max_answer_length = max_answer_length, .stride = stride, .allow_empty = allow_empty};
  const auto found = self.read("answer", [&](const TextModel& model) { return model.answer(question, context, options); });
  const nb::list counted = places(context, offsets_of(found));
  nb::list list;
  for (std::size_t i = 0; i < found.size(); ++i) list.append(make_result("Answer", found[i].text, found[i].score, counted[i][0], counted[i][1]));
  return list;
}

Typed<"list[attn.RankedDocument]"> rank(const Model& self, const std::string& query, const SingleTexts& given, std::optional<std::int64_t> top_k,
                                        std::optional<std::int64_t> max_length, bool truncation, std::int64_t batch_size, const Done& on_progress) {
  constexpr const char* kOp = "rank";
  const GivenTexts documents(given, kOp, false, "documents");
  const RankOptions options{
      .max_length = max_length, .truncation = truncation, .top_k = top_k, .batch_size = batch_size, .on_progress = progress_of(on_progress)};
  nb::list list;
  for (const RankedDocument& each : self.read(kOp, [&](const TextModel& model) { return model.rank(query, documents.texts, options); }))
    list.append(make_result("RankedDocument", each.index, each.score));
  return list;
}

std::string decode(const Model& self, const ArrayLike& given, bool skip_special_tokens) {
  const Array<std::int32_t> ids = ids_of(given, "decode", "ids");
  if (ids.shape().size() != 1) detail::fail(ErrorCode::shape, "decode", "ids", {"rank 1"}, {"rank ", ids.shape().size()});
  const std::vector<std::int64_t> numbers(ids.begin(), ids.end());
  return self.read("decode", [&](const TextModel& model) { return model.decode(numbers, skip_special_tokens); });
}

Typed<"attn.Gradients"> gradients(Model& self, const Ids& input_ids, const MaybeArrayLike& attention_mask, const MaybeArrayLike& token_type_ids,
                                  const std::optional<Label>& label, std::optional<std::int64_t> component, std::int64_t row,
                                  std::optional<std::int64_t> token, bool embeddings, bool attentions, bool parameters) {
  constexpr const char* kOp = "gradients";
  const EncodingTensors<2> inputs = encoding_of(kOp, input_ids, attention_mask, token_type_ids);
  const GradientOptions options{.target = {.row = row, .label = label, .component = component, .token = token},
                                .embeddings = embeddings,
                                .attentions = attentions,
                                .parameters = parameters};
  const auto result = self.change(kOp, [&](TextModel& model) { return model.gradients(inputs, options); });
  return make_result("Gradients", result.value, to_python(result.embeddings), to_python(result.attentions), to_python(result.parameters));
}

Typed<"attn.Attribution"> attribute(const Model& self, const std::string& text, const Word<kAttributionMethodNames>& method,
                                    const std::optional<Label>& target, std::int64_t steps) {
  constexpr const char* kOp = "attribute";
  const AttributeOptions options{.method = word_of<AttributionMethod>(method, kOp, "method"), .target = target, .steps = steps};
  const TextAttribution result = self.read(kOp, [&](const TextModel& model) { return model.attribute(text, options); });
  Array<float> scores({static_cast<std::int64_t>(result.scores.size())});
  std::copy(result.scores.begin(), result.scores.end(), scores.data());
  return make_result("Attribution", to_python(result.tokens), places(text, result.offsets), to_python(scores), result.delta);
}

using Examples = Typed<"collections.abc.Iterable[tuple[str | tuple[str, str], int | float | str]]">;
using Progress = Typed<"collections.abc.Callable[[attn.FineTuneProgress], bool | None]">;

std::vector<FineTuneExample> examples_of(const Examples& given) {
  std::vector<FineTuneExample> examples;
  for (const nb::handle each : given) {
    FineTuneExample example;
    if (!nb::isinstance<nb::str>(each[0])) {
      example.text = nb::cast<std::string>(each[0][0]);
      example.text_pair = nb::cast<std::string>(each[0][1]);
    } else {
      example.text = nb::cast<std::string>(each[0]);
    }
    example.label = nb::cast<decltype(example.label)>(each[1]);
    examples.push_back(std::move(example));
  }
  return examples;
}

Typed<"attn.FineTuneResult"> fine_tune(Model& self, const Examples& given, std::int64_t epochs, std::int64_t batch_size,
                                       std::optional<double> learning_rate, double weight_decay, std::optional<std::int64_t> layers,
                                       std::vector<std::string> labels, std::uint64_t seed, double validation, const Progress& on_progress) {
  const std::vector<FineTuneExample> examples = examples_of(given);
  FineTuneOptions options{.epochs = epochs,
                          .batch_size = batch_size,
                          .learning_rate = learning_rate,
                          .weight_decay = weight_decay,
                          .layers = layers,
                          .labels = std::move(labels),
                          .seed = seed,
                          .validation = validation};
  options.on_progress = [f = nb::handle(on_progress), signals = Signals()](const FineTuneProgress& now) mutable {
    signals.check();
    const Locked locked;
    if (f.is_none()) return true;
    const nb::object progress =
        make_result("FineTuneProgress", now.epoch, now.step, now.steps, now.loss, now.validation_loss, now.validation_accuracy);
    return !f(progress).is(nb::handle(Py_False));
  };
  const FineTuneResult result = self.change("fine_tune", [&](TextModel& model) { return model.fine_tune(examples, options); });
  return make_result("FineTuneResult", result.loss, result.validation_accuracy);
}

}  // namespace

void define_text_model(nb::module_& module) {
  nb::class_<LayerPatch>(module, "LayerPatch", "What one layer works with instead of what it would have computed (Vig et al. 2020).")
      .def(
          "__init__",
          [](LayerPatch* self, std::int64_t layer, const MaybeArrayLike& hidden_state, const MaybeArrayLike& merged) {
            const auto copy = [](const MaybeArrayLike& given, const char* name) {
              return given.is_none() ? std::nullopt : std::optional(TensorCopy(Floats(given, "LayerPatch", name)));
            };
            new (self) LayerPatch{.layer = layer, .hidden_state = copy(hidden_state, "hidden_state"), .merged = copy(merged, "merged")};
          },
          nb::arg("layer"), nb::kw_only(), nb::arg("hidden_state") = nb::none(), nb::arg("merged") = nb::none(),
          "layer is counted from 0; hidden_state (B,L,E) is its input, merged (B,L,E) the heads' results side by side, before W_O. Copies.");

  nb::class_<Model> model(module, "TextModel",
                          R"(Runs a text model from a Hugging Face folder: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec, MPNet,
ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2 or GTE, with or without a head (transformers' AutoModel,
AutoModelForTokenClassification and so on; sentence-transformers' SentenceTransformer).)");
  model.def_static(
      "load",
      [](const Path& path, const Word<kWeightsNames>& weights, Threads threads) {
        const TextModelOptions options{.weights = maybe_word_of<Weights>(weights, "TextModel.load", "weights"), .tokenizer = make_tokenizer};
        const auto folder = path_of(path);
        return new Model{.object = run(threads, [&] { return TextModel::load(folder, options); }), .threads = threads};
      },
      nb::arg("path"), nb::kw_only(), nb::arg("weights") = nb::none(), nb::arg("threads") = nb::none(),
      R"(A folder with config.json and model.safetensors, and what else the authors published beside them.

weights: 'float32' or 'int8', how weights of linear maps are kept and multiplied; default as the files have them.
threads: of its calls; default as many as set_num_threads() says.

Raises FormatError, ConfigError, MismatchError (all missing, unexpected and mis-shaped tensors at once), OutOfMemoryError;
UnsupportedError for other models, and, once texts are to be tokenized, for a tokenizer with a part that attn does not know where
the package tokenizers is not installed.)");
  define_threads(model);
  model.def("tokenize", &tokenize, nb::arg("texts"), nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("add_special_tokens") = true, nb::arg("truncation_side") = nb::none(), nb::arg("padding_side") = nb::none(),
            R"(Token ids of a text, of texts, or of pairs of texts.

max_length: what texts are cut to, special tokens included; default that of the model. truncation=False: a longer one raises
OutOfRangeError.
add_special_tokens: whether [CLS] and the like are put around a text.
truncation_side: where what is too long is cut, 'left' or 'right'; default as tokenizer_config.json says, else 'right', its end.
padding_side: where shorter texts are filled up, in the same way.

Raises UnsupportedError without a tokenizer that attn reads, OutOfMemoryError.)");
  model.def("tokenize_words", &tokenize_words, nb::arg("texts"), nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("add_special_tokens") = true, nb::arg("truncation_side") = nb::none(), nb::arg("padding_side") = nb::none(),
            R"(Token ids of lists of words, or of pairs of lists, as is_split_into_words of transformers' tokenizers: each word is tokenized as a
text by itself, offsets are places in it, and words of the result says which it is. Arguments are those of tokenize.

Raises UnsupportedError for a tokenizer that attn does not read itself, OutOfRangeError, ArgumentError, OutOfMemoryError.)");
  for (const char* name : {"forward", "__call__"})
    model.def(name, &forward, nb::arg("input_ids"), nb::arg("attention_mask") = nb::none(), nb::arg("token_type_ids") = nb::none(), nb::kw_only(),
              nb::arg("output_attentions") = false, nb::arg("output_hidden_states") = false, nb::arg("mask") = nb::none(),
              nb::arg("is_causal") = false, nb::arg("head_mask") = nb::none(), nb::arg("patch") = nb::none(), nb::arg("trace") = false,
              nb::arg("trace_layers") = nb::none(),
              R"(An Encoding, or token ids (B,L) -> hidden states (B,L,E), and logits where the checkpoint has a head: (B,C), of tokens
(B,L,C).

attention_mask (B,L): 1 where there is a token; default everywhere. token_type_ids (B,L): default 0. What transformers' tokenizers
return with return_tensors='np' can be passed on: model(**encoding).
output_attentions, output_hidden_states: return the weights of every layer; the input of every layer, and the output.
mask: a Mask beside the padding, in every layer. head_mask (layers,H): what each head's result is multiplied by before W_O.
patch: a LayerPatch. trace: True or names of intermediate results; trace_layers: of these layers, counted from 0.

Raises ShapeError, MaskError, OutOfRangeError for an id without a row, more ids than positions or a layer that is not there,
DtypeError for ids that are no whole numbers, OutOfMemoryError.)");
  model.def("embed", &embed, nb::arg("texts"), nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("pooling") = nb::none(), nb::arg("normalize") = nb::none(), nb::arg("batch_size") = 32, nb::arg("prompt") = nb::none(),
            nb::arg("prompt_name") = nb::none(), nb::arg("on_progress") = nb::none(),
            R"(Vectors (N,E) of N texts; one text is N = 1.

Hidden states pooled over what is no padding, through the checkpoint's Dense where it has one, and scaled to length 1 where the
checkpoint says so (Reimers & Gurevych 2019). Texts are sorted into batches by length; any batch_size gives the same bits.
pooling: 'mean', 'cls', 'max', 'lasttoken', 'weightedmean', 'mean_sqrt_len'; default what the checkpoint says, else the mean.
prompt: put before each text; prompt_name: one of config_sentence_transformers.json.
on_progress(done, total): called after each batch; what it raises ends the call, as Ctrl-C does.

Raises as tokenize and forward, ConfigError.)");
  model.def("classify", &classify, nb::arg("texts"), nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("batch_size") = 32, nb::arg("on_progress") = nb::none(),
            R"(Of each text, or pair of texts, all labels by falling score, as transformers' TextClassificationPipeline.

Softmax of the logits; sigmoid of each where the checkpoint is for several labels at once or has one; the logits themselves of a
regression. If the files of a cross-encoder name another function, pairs are scored by it, as by sentence-transformers'
CrossEncoder.predict (Identity gives logits), and a text alone if there is one label. Raises UnsupportedError without a head,
and as embed.)");
  model.def("classify_tokens", &classify_tokens, nb::arg("texts"), nb::kw_only(), nb::arg("aggregation") = "simple", nb::arg("stride") = nb::none(),
            nb::arg("ignore_labels") = std::vector<std::string>{"O"}, nb::arg("max_length") = nb::none(), nb::arg("truncation") = true,
            nb::arg("batch_size") = 32, nb::arg("on_progress") = nb::none(),
            R"(What each text names, with its places there, as transformers' TokenClassificationPipeline.

aggregation: 'none': each token is one; 'simple': neighbours with the same label are one, where the second does not begin (B-)
another; 'first', 'average', 'max': the same, and a word has one label, that of its first token, of the mean of its tokens'
probabilities, or of its most certain token.
stride: a text that is too long goes in windows that have so many tokens in common; of overlapping entities the longest counts, then
the most certain. Without it a long text is cut.

Raises UnsupportedError for a head that is for something else and for a tokenizer that attn does not read itself, ConfigError for a
stride that leaves no room, or with 'none'; and as embed.)");
  model.def("fill_mask", &fill_mask, nb::arg("text"), nb::kw_only(), nb::arg("top_k") = 5, nb::arg("targets") = nb::none(),
            R"(For each mask of the text ([MASK], <mask>) its most likely tokens, as transformers' FillMaskPipeline.

targets: of these tokens alone; of a text that is no token its first one.

Raises ArgumentError for a text without a mask and for a target that no token begins, OutOfRangeError for a text that is too long,
UnsupportedError as classify_tokens.)");
  model.def("answer", &answer, nb::arg("question"), nb::arg("context"), nb::kw_only(), nb::arg("top_k") = 1, nb::arg("max_answer_length") = 15,
            nb::arg("stride") = nb::none(), nb::arg("allow_empty") = false,
            R"(Parts of the context that answer the question, the most likely first, as transformers' QuestionAnsweringPipeline (version 4): of
whole words.

top_k: there may be fewer. max_answer_length: in tokens.
stride: a context that is too long goes in windows of at most 384 tokens, question included, with so many in common; default 128, of
shorter ones half.
allow_empty: that there is no answer is one, too; its text is empty.

Raises ArgumentError for an empty question or context, OutOfRangeError for a question that leaves no room, ConfigError for a stride
that leaves none, UnsupportedError as classify_tokens.)");
  model.def("rank", &rank, nb::arg("query"), nb::arg("documents"), nb::kw_only(), nb::arg("top_k") = nb::none(), nb::arg("max_length") = nb::none(),
            nb::arg("truncation") = true, nb::arg("batch_size") = 32, nb::arg("on_progress") = nb::none(),
            R"(Documents by falling relevance to the query, by a cross-encoder: a head with one label, through the activation that its files
name, else a sigmoid (sentence-transformers' CrossEncoder.rank).

top_k: default all. Raises UnsupportedError for another head, and as embed.)");
  model.def("decode", &decode, nb::arg("ids"), nb::arg("skip_special_tokens") = false,
            R"(The text of tokens, as transformers' decode. Ids that no token has are left out.

Raises UnsupportedError for a decoder or tokenizer that attn does not read itself, ShapeError, DtypeError.)");
  model.def("gradients", &gradients, nb::arg("input_ids"), nb::arg("attention_mask") = nb::none(), nb::arg("token_type_ids") = nb::none(),
            nb::kw_only(), nb::arg("label") = nb::none(), nb::arg("component") = nb::none(), nb::arg("row") = 0, nb::arg("token") = nb::none(),
            nb::arg("embeddings") = false, nb::arg("attentions") = false, nb::arg("parameters") = false,
            R"(The gradient of one number with respect to embeddings, attentions or parameters, without dropout (torch.autograd.grad).

The number: of sequence `row` the logit of `label` before softmax, by number or name, or `component` of its pooled vector. Where the
head has logits of each token it is that of `token`, and `label` is of fill-mask a token, of question-answering 'start' or 'end'.

Raises UnsupportedError for int8 weights and for a label without a head, ArgumentError where the target is neither or both or nothing
is asked for, OutOfRangeError for what is not there; and as forward.)");
  model.def("attribute", &attribute, nb::arg("text"), nb::kw_only(), nb::arg("method") = "integrated_gradients", nb::arg("target") = nb::none(),
            nb::arg("steps") = 50,
            R"(A score for each token of a text: what it has to do with the answer f, a logit before softmax.

method: 'integrated_gradients' Σ (x - b) · ∫ ∂f/∂x along the way from [PAD] to x (Sundararajan et al. 2017), by `steps`;
'gradient_x_input' Σ x · ∂f/∂x; 'attention_rollout' (Abnar & Zuidema 2020); 'attention_gradient' (Chefer et al. 2021);
'leave_one_out' f of the text less f without the token.
target: a label by number or name; without a head the number of a component of the pooled vector. Default the largest logit.

Raises UnsupportedError for gradients of int8 weights, ArgumentError, OutOfRangeError, ConfigError, OutOfMemoryError.)");
  model.def("fine_tune", &fine_tune, nb::arg("examples"), nb::kw_only(), nb::arg("epochs") = 3, nb::arg("batch_size") = 16,
            nb::arg("learning_rate") = nb::none(), nb::arg("weight_decay") = 0.01, nb::arg("layers") = nb::none(),
            nb::arg("labels") = std::vector<std::string>(), nb::arg("seed") = 0, nb::arg("validation") = 0.0, nb::arg("on_progress") = nb::none(),
            R"(Trains the model on (text, label) or ((text, text_pair), label), as transformers' Trainer does: AdamW, gradients cut to norm 1,
the learning rate falling linearly to 0.

learning_rate: default 5e-5, of the head alone 1e-3. layers: the last so many and the head, 0 the head alone; default everything.
labels: of the head; others than the model has draw a new one. seed: of order, dropout and a new head; it alone says the result.
validation: share of the examples that is held out. on_progress(FineTuneProgress): after each step; False ends the run, and
Ctrl-C does. Weights are then those after the last whole step.

Raises UnsupportedError for int8 weights, ArgumentError, OutOfRangeError, ConfigError, OutOfMemoryError, and BusyError where
on_progress calls the model.)");
  model.def(
      "save_pretrained",
      [](const Model& self, const Path& path, const Word<kFileWeightsNames>& weights) {
        const SaveOptions options{.weights = maybe_word_of<FileWeights>(weights, "save_pretrained", "weights")};
        const auto folder = path_of(path);
        self.read("save_pretrained", [&](const TextModel& of) { of.save_pretrained(folder, options); });
      },
      nb::arg("path"), nb::kw_only(), nb::arg("weights") = nb::none(),
      R"(Writes the model as transformers reads it. weights: 'float32', 'float16' or 'int8'; default as the model has them.

Raises OutOfRangeError for a number that float16 has not, FormatError for NaN or infinity that would become int8, ArgumentError where
the folder cannot be written to.)");
  define_state(model);
  model
      .def(
          "token_to_id",
          [](const Model& self, const std::string& token) {
            return self.read("token_to_id", [&](const TextModel& of) { return of.token_to_id(token); });
          },
          nb::arg("token"), "None for a token that the vocabulary has not.")
      .def(
          "id_to_token",
          [](const Model& self, std::int64_t id) { return self.read("id_to_token", [&](const TextModel& of) { return of.id_to_token(id); }); },
          nb::arg("id"), "None for an id that the vocabulary has not.")
      .def_prop_ro(
          "task",
          [](const Model& self) -> TaskName {
            return nb::borrow<TaskName>(to_python(std::string(name_of(self.read("task", [](const TextModel& of) { return of.task(); })))));
          },
          "What the checkpoint's head is for; 'embedding' without one.")
      .def_prop_ro(
          "labels", [](const Model& self) { return self.read("labels", [](const TextModel& of) { return of.labels(); }); },
          "Of a classification, of texts or of tokens; else empty.")
      .def_prop_ro(
          "notes", [](const Model& self) { return self.read("notes", [](const TextModel& of) { return of.notes(); }); },
          "What the files have that the model does not use, in words: tensors of another head, say. transformers warns of it.")
      .def_prop_ro(
          "max_length", [](const Model& self) { return self.read("max_length", [](const TextModel& of) { return of.max_length(); }); },
          "Ids that a text is cut to unless the call says otherwise.")
      .def_prop_ro(
          "weights",
          [](const Model& self) {
            return std::string(kWeightsNames[static_cast<std::size_t>(self.read("weights", [](const TextModel& of) { return of.weights(); }))]);
          },
          "How weights of linear maps are kept and multiplied: 'float32' or 'int8'.");
}

}  // namespace attn::python
