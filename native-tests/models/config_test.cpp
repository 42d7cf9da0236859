#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "attn/io/safetensors.hpp"
#include "models/edit.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_config_test {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

Checkpoint stock(const std::string& name) { return read_checkpoint(testdata("models/" + name)); }
const Checkpoint& bert() {
  static const Checkpoint checkpoint = stock("tiny-bert");
  return checkpoint;
}

void too_large(const Checkpoint& checkpoint) {
  try {
    detail::ModelLoader loader(checkpoint.files());
    FAIL_CHECK("there is room for it");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ErrorCode::memory);
    CHECK(std::string(error.what()).find("bytes") != std::string::npos);
  }
}

Bytes bytes(const std::string& text) { return {text.begin(), text.end()}; }

detail::ModelConfig read(const Checkpoint& checkpoint) { return detail::read_model_config(checkpoint.files()); }

struct Limit {
  explicit Limit(std::uint64_t bytes) { set_memory_limit(bytes); }
  ~Limit() { set_memory_limit(std::uint64_t{1} << 63); }
};

void refused(ErrorCode code, const std::string& file, const std::string& argument, const Checkpoint& checkpoint,
             const std::vector<std::string>& words = {}) {
  check_error({code, file, argument, words}, [&] { detail::ModelLoader loader(checkpoint.files()); });
}

TEST_CASE("a config.json that is not a JSON object is a FORMAT error", "[models]") {
  struct Case {
    const char* what;
    Bytes file;
    std::vector<std::string> words;
  };
  const std::string good(bert().config.begin(), bert().config.end());
  std::string zero = good;
  zero[good.find("false")] = '\0';
  const Case cases[] = {
      {"empty", {}, {"not valid JSON near byte 0"}},
      {"HTML", bytes("<html>404</html>"), {"not valid JSON near byte"}},
      {"cut", bytes(good.substr(0, good.size() / 2)), {"not valid JSON near byte"}},
      {"more after the object", bytes(good + "{}"), {"not valid JSON near byte"}},
      {"a zero byte inside", bytes(zero), {"not valid JSON near byte " + std::to_string(good.find("false"))}},
      {"a byte order mark", bytes("\xEF\xBB\xBF" + good), {"not valid JSON near byte 0"}},
      {"an array", bytes("[1]"), {"an array", "expected an object"}},
      {"a number", bytes("7"), {"a number", "expected an object"}},
      {"null", bytes("null"), {"null", "expected an object"}},
      {"nested 65 deep", bytes("{\"a\":" + std::string(64, '[') + std::string(64, ']') + "}"), {"deeper than 64 levels"}},
      {"above 4 MiB", bytes(std::string(4 << 20, ' ') + good), {"bytes, expected at most 4194304"}},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    Checkpoint checkpoint = bert();
    checkpoint.config = c.file;
    refused(ErrorCode::format, "config.json", "the file", checkpoint, c.words);
  }
  Checkpoint deep = with_member(bert(), "something else", json::parse(std::string(63, '[') + std::string(63, ']')));
  CHECK_NOTHROW(read(deep));
}

TEST_CASE("an unknown model_type is an UNSUPPORTED error that lists the known ones", "[models]") {
  const std::vector<std::string> all{"bert", "distilbert", "roberta", "xlm-roberta", "mpnet", "modernbert", "onnxruntime"};
  refused(ErrorCode::unsupported, "config.json", "model_type", with_member(bert(), "model_type", "t5"), all);
  refused(ErrorCode::unsupported, "config.json", "model_type", with_member(bert(), "model_type", "Bert"), {"Bert"});
  refused(ErrorCode::unsupported, "config.json", "model_type", with_config(bert(), [](json& config) { config.erase("model_type"); }), {"missing"});
  refused(ErrorCode::unsupported, "config.json", "model_type", with_member(bert(), "model_type", nullptr), {"missing"});
  refused(ErrorCode::config, "config.json", "model_type", with_member(bert(), "model_type", 7), {"a string"});
}

TEST_CASE("every size must exist, be an integer and be in its range", "[models]") {
  const std::pair<const char*, std::vector<const char*>> families[] = {
      {"tiny-bert",
       {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size"}},
      {"tiny-distilbert", {"vocab_size", "dim", "n_layers", "n_heads", "hidden_dim", "max_position_embeddings"}},
      {"tiny-roberta",
       {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size"}},
      {"tiny-mpnet", {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings"}},
      {"tiny-modernbert", {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings"}},
      {"tiny-albert", {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "type_vocab_size"}}};
  for (const auto& [family, sizes] : families)
    for (const std::string name : sizes) {
      INFO(family << ' ' << name);
      const Checkpoint checkpoint = stock(family);
      REQUIRE(json::parse(checkpoint.config).contains(name));
      if (name != "max_position_embeddings" && name != "type_vocab_size") {
        refused(ErrorCode::config, "config.json", name, with_config(checkpoint, [&](json& config) { config.erase(name); }), {"missing"});
        refused(ErrorCode::config, "config.json", name, with_member(checkpoint, name, nullptr), {"missing"});
      }
      for (const json& value : {json(0), json(-4), json(4.5), json("32"), json(1e300), json(2147483648.0), json(true), json::array({32})}) {
        INFO(value.dump());
        refused(ErrorCode::config, "config.json", name, with_member(checkpoint, name, value), {"a whole number from 1 to"});
      }
      CHECK_NOTHROW(read(with_member(checkpoint, name, json::parse(checkpoint.config).at(name).get<double>())));
    }
}

TEST_CASE("sizes that transformers does not require have its defaults", "[models]") {
  const auto without = [](const char* checkpoint, const char* name) {
    return read(with_config(stock(checkpoint), [&](json& config) { config.erase(name); }));
  };
  for (const char* name : {"tiny-bert", "tiny-roberta"}) CHECK(without(name, "type_vocab_size").type_vocab_size == 2);
  for (const char* name : {"tiny-bert", "tiny-distilbert", "tiny-roberta", "tiny-mpnet"})
    CHECK(without(name, "max_position_embeddings").max_position_embeddings == 512);
  CHECK(without("tiny-roberta", "max_position_embeddings").max_length == 510);
  CHECK(without("tiny-modernbert", "max_position_embeddings").max_position_embeddings == 8192);
}

TEST_CASE("sizes must be consistent", "[models]") {
  refused(ErrorCode::config, "config.json", "the hidden size", with_member(bert(), "num_attention_heads", 5),
          {"a multiple of the number of heads, 5"});
  // Even if no tensor has a row per position.
  for (const char* name : {"tiny-modernbert", "tiny-jina", "tiny-deberta", "tiny-bert"})
    for (const std::int64_t positions : {(1 << 20) + 1, 0x7fffffff}) {
      INFO(name);
      refused(ErrorCode::config, "config.json", "max_position_embeddings", with_member(stock(name), "max_position_embeddings", positions),
              {"1048576"});
    }
  refused(ErrorCode::config, "config.json", "num_hidden_layers", with_member(bert(), "num_hidden_layers", 10'001), {"10000"});
  refused(ErrorCode::config, "config.json", "a head's width", with_member(stock("tiny-modernbert"), "num_attention_heads", 32), {"even"});
  refused(ErrorCode::config, "config.json", "max_position_embeddings", with_member(stock("tiny-mpnet"), "max_position_embeddings", 2),
          {"at least 3"});
  refused(ErrorCode::config, "config.json", "pad_token_id", with_member(stock("tiny-roberta"), "pad_token_id", 66));
  refused(ErrorCode::config, "config.json", "max_position_embeddings",
          with_member(with_member(stock("tiny-roberta"), "pad_token_id", nullptr), "max_position_embeddings", 2), {"at least 3"});
  for (const json& value : {json(0), json(-1e-5), json("1e-5"), json(1e-31), json(1e38)}) {
    INFO(value.dump());
    refused(ErrorCode::config, "config.json", "layer_norm_eps", with_member(bert(), "layer_norm_eps", value),
            {"a number above 0, from 1e-30 to 1e30"});
  }
}

TEST_CASE("features that attn does not compute are UNSUPPORTED errors", "[models]") {
  struct Case {
    const char* family;
    const char* name;
    json value;
    std::vector<std::string> words;
  };
  const Case cases[] = {
      {"tiny-bert", "hidden_act", "selu", {"gelu_pytorch_tanh", "selu"}},
      {"tiny-distilbert", "activation", "selu", {"selu"}},
      {"tiny-modernbert", "hidden_activation", "selu", {"selu"}},
      {"tiny-modernbert", "classifier_activation", "selu", {"selu"}},
      {"tiny-bert", "position_embedding_type", "relative_key", {"expected absolute", "relative_key"}},
      {"tiny-roberta", "position_embedding_type", "relative_key_query", {"relative_key_query"}},
      {"tiny-bert", "is_decoder", true, {"expected false"}},
      {"tiny-bert", "add_cross_attention", true, {"expected false"}},
      {"tiny-modernbert", "classifier_pooling", "max", {"cls or mean", "max"}},
      {"tiny-nomic-2024", "activation_function", "gelu", {"swiglu or geglu", "gelu"}},
      {"tiny-nomic-2024", "prenorm", true, {"expected false"}},
      {"tiny-nomic-2024", "parallel_block", true, {"expected false"}},
      {"tiny-nomic-2024", "use_rms_norm", true, {"expected false"}},
      {"tiny-nomic-2024", "causal", true, {"expected false"}},
      {"tiny-nomic-2024", "rotary_emb_interleaved", true, {"expected false"}},
      {"tiny-nomic-2024", "rotary_emb_scale_base", 512, {"expected null or 0"}},
      {"tiny-nomic-2024", "moe_every_n_layers", 2, {"expected null or 0"}},
      {"tiny-nomic-2024", "rotary_emb_fraction", 0, {"an even number"}},
      {"tiny-nomic-2024", "rotary_emb_fraction", 0.25, {"an even number"}},
      {"tiny-nomic-2024", "rotary_emb_fraction", 0.6, {"an even number"}},
      {"tiny-nomic-2024", "rotary_emb_fraction", 1.5, {"an even number"}},
      {"tiny-nomic-2024", "rotary_emb_fraction", "1", {"an even number"}},
      {"tiny-jina", "feed_forward_type", "original", {"geglu or reglu"}},
      {"tiny-jina", "position_embedding_type", "relative_key", {"expected absolute"}},
      {"tiny-gte-2024", "position_embedding_type", "absolute", {"expected rope"}},
      {"tiny-gte-2024", "layer_norm_type", "rms_norm", {"expected layer_norm"}},
      {"tiny-gte-2024", "logn_attention_scale", true, {"expected false"}},
      {"tiny-gte-2024", "pack_qkv", false, {"expected true"}},
  };
  for (const Case& c : cases) {
    INFO(c.family << ' ' << c.name);
    refused(ErrorCode::unsupported, "config.json", c.name, with_member(stock(c.family), c.name, c.value), c.words);
  }
  refused(ErrorCode::config, "config.json", "hidden_act", with_member(bert(), "hidden_act", 3), {"a string"});
  refused(ErrorCode::config, "config.json", "is_decoder", with_member(bert(), "is_decoder", "no"), {"true or false"});
  refused(ErrorCode::config, "config.json", "relative_attention_num_buckets", with_member(stock("tiny-mpnet"), "relative_attention_num_buckets", 64));
}

TEST_CASE("DeBERTa's options of relative positions are checked", "[models]") {
  const Checkpoint deberta = stock("tiny-deberta");
  const auto with = [&](const char* name, const json& value) { return with_member(deberta, name, value); };
  const detail::RelativeConfig stock_config = read(deberta).relative;
  CHECK((stock_config.c2p && stock_config.p2c && stock_config.shares_projections && stock_config.has_norm));
  CHECK(stock_config.rows() == 16);
  CHECK(stock_config.scale_factor == 3);
  for (const json& parts : {json("c2p"), json(" C2P | p2p"), json::array({"c2p"}), json::array({"c2p", "p2p", 7})}) {
    CAPTURE(parts.dump());
    const detail::RelativeConfig config = read(with("pos_att_type", parts)).relative;
    CHECK((config.c2p && !config.p2c));
    CHECK(config.scale_factor == 2);
  }
  for (const json& parts : {json(), json::array(), json("c2pp2c"), json("")}) CHECK(read(with("pos_att_type", parts)).relative.scale_factor == 1);
  const detail::RelativeConfig none = read(with("relative_attention", false)).relative;
  CHECK((!none.c2p && !none.p2c && none.span == 0 && none.has_norm));
  CHECK(none.scale_factor == 3);
  // Without buckets there is a row per distance up to the largest, by default the number of positions.
  for (const int no : {-1, 0}) CHECK(read(with("position_buckets", no)).relative.rows() == 80);
  for (const int no : {-1, 0}) {
    CHECK(read(with_member(with("position_buckets", -1), "max_relative_positions", no)).relative.rows() == 128);
    CHECK(read(with("max_relative_positions", no)).relative.max_distance == 64);
  }
  CHECK(read(with("position_biased_input", true)).positions == detail::PositionRows::counted);
  CHECK(read(deberta).positions == detail::PositionRows::none);
  CHECK(read(with_member(with("position_buckets", 256), "max_relative_positions", 64)).relative.rows() == 512);

  const auto refuse = [&](ErrorCode code, const char* name, const json& value, const std::vector<std::string>& words = {}) {
    CAPTURE(name, value.dump());
    refused(code, "config.json", name, with(name, value), words);
  };
  for (const json& value : {json(-2), json(1.5), json("8"), json(1e300), json((1 << 24) + 1), json(true)}) {
    refuse(ErrorCode::config, "position_buckets", value);
    refuse(ErrorCode::config, "max_relative_positions", value);
  }
  refuse(ErrorCode::config, "position_buckets", 1, {"at least 2"});
  refused(ErrorCode::config, "config.json", "position_buckets", with("max_relative_positions", 5), {"below twice max_relative_positions, 5"});
  refuse(ErrorCode::config, "relative_attention", 1);
  refuse(ErrorCode::config, "share_att_key", "yes");
  refuse(ErrorCode::config, "norm_rel_ebd", 3);
  refuse(ErrorCode::config, "pos_att_type", 3);
  refuse(ErrorCode::config, "type_vocab_size", -1);
  refuse(ErrorCode::unsupported, "conv_kernel_size", 3, {"0"});
  refuse(ErrorCode::unsupported, "embedding_size", 16, {"32"});
  refuse(ErrorCode::unsupported, "attention_head_size", 16, {"8"});
  refuse(ErrorCode::unsupported, "pooler_hidden_size", 16, {"32"});
  refuse(ErrorCode::unsupported, "pooler_hidden_act", "selu", {"selu"});
  refused(ErrorCode::config, "config.json", "the hidden size", with("num_attention_heads", 5), {"a multiple of the number of heads, 5"});
  refuse(ErrorCode::config, "num_attention_heads", 0);
  const Limit limit(std::uint64_t{1} << 30);
  too_large(with("position_buckets", 1 << 24));
  too_large(with_member(with("position_buckets", -1), "max_relative_positions", 1 << 24));
}

TEST_CASE("rotary options are read in the form of transformers and of the original configurations", "[models]") {
  const Checkpoint first = stock("tiny-nomic-2024"), gte = stock("tiny-gte"), new_gte = stock("tiny-gte-2024");
  const detail::ModelConfig nomic = read(first);
  CHECK(nomic.rotary_width == 2);
  CHECK(nomic.intermediate_size == 256);
  CHECK(nomic.max_length == 48);
  CHECK(read(with_member(first, "rotary_scaling_factor", nullptr)).max_length == 64);
  CHECK(nomic.distances.at(0).rope_theta == 1000);
  CHECK(read(with_config(stock("tiny-nomic"), [](json& config) { config.erase("rope_parameters"); })).distances.at(1).rope_theta == 1000);
  CHECK(read(gte).rope.factor == 1.5);
  CHECK(read(with_config(gte, [](json& config) { config.erase("rope_parameters"); })).distances.at(0).rope_theta == 160'000);
  const detail::ModelConfig ntk = read(new_gte);  // 200 and a factor of 8, heads of width 4
  CHECK(ntk.distances.at(0).rope_theta == 1600);
  CHECK(std::abs(ntk.rope.factor - std::sqrt(8.0)) < 1e-12);
  const detail::ModelConfig plain = read(with_member(new_gte, "rope_scaling", nullptr));
  CHECK(plain.distances.at(0).rope_theta == 200);
  CHECK(plain.rope.factor == 1);
  const auto rope = [&](const json& value) { return with_member(new_gte, "rope_scaling", value); };
  refused(ErrorCode::unsupported, "config.json", "rope_scaling.type", rope({{"type", "longrope"}, {"factor", 2}}),
          {"default, dynamic, linear, llama3, ntk or yarn"});
  refused(ErrorCode::unsupported, "config.json", "rope_scaling.mixed_b", rope({{"type", "ntk"}, {"factor", 2}, {"mixed_b", 0.5}}));
  refused(ErrorCode::config, "config.json", "rope_scaling.factor", rope({{"type", "ntk"}, {"factor", -2}}), {"above 0"});
  refused(ErrorCode::config, "config.json", "rope_scaling", rope("ntk"), {"an object"});
  for (const auto& [checkpoint, name] : {std::pair{&first, "n_positions"}, {&new_gte, "max_position_embeddings"}})
    refused(ErrorCode::config, "config.json", name, with_member(*checkpoint, name, (1 << 20) + 1), {"1048576"});
  refused(ErrorCode::config, "config.json", "head_dim", with_member(stock("tiny-nomic"), "head_dim", 8), {"from 4 to 4"});
  for (const char* name : {"tiny-nomic", "tiny-nomic-2024", "tiny-gte-2024", "tiny-jina"})
    CHECK_THROWS_AS(read(with_member(stock(name), std::string(name) == "tiny-nomic-2024" ? "n_head" : "num_attention_heads", 1000)), Error);
}

TEST_CASE("Jina's second encoder is recognised by its positions, and the code model by its name", "[models]") {
  const Checkpoint jina = stock("tiny-jina");
  CHECK(read(jina).alibi);
  CHECK(read(jina).hidden_act == Activation::gelu);
  CHECK(read(stock("tiny-jina-mean")).hidden_act == Activation::relu);
  refused(ErrorCode::unsupported, "config.json", "auto_map.AutoModel",
          with_config(jina, [](json& config) { config["auto_map"]["AutoModel"] = "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"; }),
          {"norms of queries and keys"});
}

TEST_CASE("sparse attention is refused with its own message", "[models]") {
  for (const char* type : {"longformer", "big_bird"})
    refused(ErrorCode::unsupported, "config.json", "model_type", with_member(bert(), "model_type", type),
            {type, "sparse", "full attention", "modernbert", "jina-embeddings-v2"});
}

TEST_CASE("shared layers are stored once", "[models]") {
  const Checkpoint albert = stock("tiny-albert-mlm");
  const detail::ModelConfig shared = read(albert);
  CHECK(shared.num_hidden_layers == 8);
  CHECK(shared.stored_layers() == 4);
  const std::int64_t expected[] = {0, 1, 0, 1, 2, 3, 2, 3};
  for (std::int64_t place = 0; place < 8; ++place) CHECK(shared.stored_layer(place) == expected[place]);
  const auto model = load(albert);
  std::size_t weights = 0;
  for (const auto& [name, shape] : model->parameter_shapes()) weights += name.ends_with(".ffn.weight") ? 1 : 0;
  CHECK(weights == 4);
  const detail::ModelConfig plain = read(with_config(albert, [](json& config) {
    config.erase("num_hidden_groups");
    config.erase("inner_group_num");
    config.erase("embedding_size");
  }));
  CHECK(plain.stored_layers() == 1);
  CHECK(plain.word_width() == 128);
  refused(ErrorCode::config, "config.json", "num_hidden_groups", with_member(albert, "num_hidden_groups", 5), {"from 1 to 4"});
  refused(ErrorCode::config, "config.json", "inner_group_num", with_member(albert, "inner_group_num", 2501), {"from 1 to 2500"});
  for (const char* name : {"num_hidden_groups", "inner_group_num", "embedding_size"})
    for (const json& value : {json(0), json(-4), json(4.5), json("2"), json(1e300)})
      refused(ErrorCode::config, "config.json", name, with_member(albert, name, value), {"a whole number from 1 to"});
  const Limit limit(std::uint64_t{1} << 30);
  too_large(with_config(albert, [](json& config) {
    config["num_hidden_layers"] = config["num_hidden_groups"] = 5000;
    config["inner_group_num"] = 2;
    config["hidden_size"] = config["intermediate_size"] = 1024;
  }));
}

TEST_CASE("an activation may have several names", "[models]") {
  const std::pair<const char*, Activation> others[] = {{"tanh", Activation::tanh},
                                                       {"mish", Activation::mish},
                                                       {"quick_gelu", Activation::quick_gelu},
                                                       {"sigmoid", Activation::sigmoid},
                                                       {"linear", Activation::identity}};
  for (const auto& [name, activation] : others) CHECK(read(with_member(bert(), "hidden_act", name)).hidden_act == activation);
  for (const char* name : {"gelu", "gelu_python"}) CHECK(read(with_member(bert(), "hidden_act", name)).hidden_act == Activation::gelu);
  for (const char* name : {"gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate"})
    CHECK(read(with_member(bert(), "hidden_act", name)).hidden_act == Activation::gelu_tanh);
  // The rest of transformers' ACT2FN.
  for (const char* name : {"gelu_10", "hardswish", "laplace", "leaky_relu", "relu2", "relu6", "sqrtsoftplus", "prelu", "xielu"})
    refused(ErrorCode::unsupported, "config.json", "hidden_act", with_member(bert(), "hidden_act", name), {name});
  refused(ErrorCode::config, "config.json", "hidden_act", with_member(bert(), "hidden_act", nullptr), {"null"});
}

TEST_CASE("the task follows from the model's class", "[models]") {
  refused(ErrorCode::unsupported, "config.json", "architectures[0]",
          with_member(bert(), "architectures", json::array({"BertForNextSentencePrediction"})),
          {"BertForNextSentencePrediction", "BertForTokenClassification", "AutoModel.from_pretrained(folder).save_pretrained(other)"});
  const std::pair<const char*, Task> classes[] = {{"BertModel", Task::embedding},
                                                  {"BertLMHeadModel", Task::embedding},
                                                  {"BertForMaskedLM", Task::fill_mask},
                                                  {"BertForPreTraining", Task::fill_mask},
                                                  {"BertForSequenceClassification", Task::text_classification},
                                                  {"BertForTokenClassification", Task::token_classification},
                                                  {"BertForMultipleChoice", Task::multiple_choice}};
  for (const auto& [name, task] : classes) {
    CAPTURE(name);
    const detail::ModelConfig config = read(with_member(bert(), "architectures", json::array({name})));
    CHECK(config.task == task);
    CHECK(config.labels.empty() == (task != Task::text_classification && task != Task::token_classification));
  }
  CHECK(read(with_member(bert(), "architectures", json::array())).task == Task::embedding);
  CHECK(read(with_config(bert(), [](json& config) { config.erase("architectures"); })).task == Task::embedding);
  CHECK(read(bert()).labels == std::vector<std::string>{"negative", "neutral", "positive"});
}

TEST_CASE("question answering needs two labels", "[models]") {
  const auto with_labels = [](const json& names) {
    return with_config(bert(), [&](json& config) {
      config["architectures"] = {"BertForQuestionAnswering"};
      config["id2label"] = names;
    });
  };
  CHECK(read(with_labels({{"0", "LABEL_0"}, {"1", "LABEL_1"}})).task == Task::question_answering);
  refused(ErrorCode::config, "config.json", "id2label", with_labels({{"0", "a"}, {"1", "b"}, {"2", "c"}}), {"3", "2 labels"});
}

TEST_CASE("the head of a masked language model is omitted if its tensors are missing or sentence-transformers loads the base model", "[models]") {
  Checkpoint checkpoint = with_member(read_checkpoint(testdata("models/tiny-bert-cls")), "architectures", json::array({"BertForMaskedLM"}));
  CHECK(read(checkpoint).task == Task::embedding);
  checkpoint.modules.clear();
  CHECK(read(checkpoint).task == Task::fill_mask);
  const std::unique_ptr<EncoderModel> model = load(checkpoint);
  CHECK(model->config().task == Task::embedding);
  const auto shapes = model->parameter_shapes();
  CHECK(std::none_of(shapes.begin(), shapes.end(), [](const auto& each) { return each.first.starts_with("cls."); }));
}

TEST_CASE("labels are counted by their names, and unnamed labels have transformers' default names", "[models]") {
  using Names = std::vector<std::string>;
  CHECK(read(with_member(bert(), "id2label", {{"0", "a"}, {"2", "b"}})).labels == Names{"a", "LABEL_1"});
  CHECK(read(with_member(bert(), "id2label", {{"1", "a"}, {"2", "b"}, {"3", "c"}})).labels == Names{"LABEL_0", "a", "b"});
  refused(ErrorCode::config, "config.json", "id2label", with_member(bert(), "id2label", {{"0", "a"}, {"1", {5}}}), {"an array for 1"});
  refused(ErrorCode::config, "config.json", "id2label", with_member(bert(), "id2label", {{"0", "a"}, {"1", nullptr}}), {"null for 1"});
  for (const char* key : {"a", "-1", "", "1.5", "99999999999999999999"})
    refused(ErrorCode::config, "config.json", "id2label", with_member(bert(), "id2label", {{key, "b"}}), {"names by their numbers"});
  CHECK(read(with_member(bert(), "id2label", {{"0", 1}, {"1", true}, {"2", "c"}})).labels == std::vector<std::string>{"1", "true", "c"});
  const auto nameless = [](const json& count) {
    return with_config(bert(), [&](json& config) {
      config.erase("id2label");
      if (!count.is_null()) config["num_labels"] = count;
    });
  };
  CHECK(read(nameless(nullptr)).labels == std::vector<std::string>{"LABEL_0", "LABEL_1"});
  CHECK(read(nameless(3)).labels == std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"});
  CHECK(read(nameless(1)).classification_function == detail::ClassificationFunction::sigmoid);
  refused(ErrorCode::config, "config.json", "num_labels", nameless(0));
  refused(ErrorCode::config, "config.json", "num_labels", nameless(1e9));
  json many = json::object();
  for (int i = 0; i < 12; ++i) many[std::to_string(i)] = "l" + std::to_string(i);
  const std::vector<std::string> labels = read(with_member(bert(), "id2label", many)).labels;
  CHECK(labels.at(2) == "l2");
  CHECK(labels.at(11) == "l11");
}

TEST_CASE("the function of the scores is that of transformers' pipeline", "[models]") {
  const auto one_label = [](const json& type) {
    return with_config(bert(), [&](json& config) {
      config["id2label"] = {{"0", "stars"}};
      config["problem_type"] = type;
    });
  };
  const auto several = [](const json& type) { return with_member(bert(), "problem_type", type); };
  CHECK(read(bert()).classification_function == detail::ClassificationFunction::softmax);
  for (const json& type : {json(nullptr), json("single_label_classification")}) {
    CHECK(read(several(type)).classification_function == detail::ClassificationFunction::softmax);
    CHECK(read(one_label(type)).classification_function == detail::ClassificationFunction::sigmoid);
  }
  CHECK(read(several("multi_label_classification")).classification_function == detail::ClassificationFunction::sigmoid);
  for (const Checkpoint& checkpoint : {several("regression"), one_label("regression")})
    CHECK(read(checkpoint).classification_function == detail::ClassificationFunction::none);
  refused(ErrorCode::unsupported, "config.json", "problem_type", several("ranking"), {"ranking", "regression"});
  refused(ErrorCode::config, "config.json", "problem_type", several(3), {"a string"});
}

TEST_CASE("ModernBERT's rotary positions and layer types are checked", "[models]") {
  const Checkpoint modern = stock("tiny-modernbert");
  const auto rope = [&](const std::function<void(json&)>& change) {
    return with_config(modern, [&](json& config) { change(config["rope_parameters"]["full_attention"]); });
  };
  refused(ErrorCode::unsupported, "config.json", "rope_parameters.full_attention.rope_type", rope([](json& of) { of["rope_type"] = "yarn"; }),
          {"expected default", "yarn"});
  refused(ErrorCode::config, "config.json", "rope_parameters.full_attention.rope_theta", rope([](json& of) { of["rope_theta"] = -1; }), {"above 0"});
  refused(ErrorCode::config, "config.json", "rope_parameters.full_attention", rope([](json& of) { of = 7; }), {"an object"});
  refused(ErrorCode::config, "config.json", "rope_parameters", with_member(modern, "rope_parameters", "default"), {"an object"});
  refused(ErrorCode::config, "config.json", "layer_types", with_member(modern, "layer_types", {"full_attention", "sliding_attention"}));
  refused(ErrorCode::unsupported, "config.json", "layer_types",
          with_member(modern, "layer_types", {"full_attention", "chunked_attention", "full_attention", "full_attention"}), {"chunked_attention"});
  refused(ErrorCode::config, "config.json", "layer_types", with_member(modern, "layer_types", "full_attention"), {"a string"});
  for (const int width : {0, 1}) CHECK(read(with_member(modern, "local_attention", width)).distances.at(1).window == 0);
  refused(ErrorCode::config, "config.json", "local_attention", with_member(modern, "local_attention", -1));
  CHECK(read(with_member(modern, "sliding_window", 5)).distances.at(1).window == 5);
  CHECK(read(with_member(modern, "local_attention", 11)).distances.at(1).window == 5);
  CHECK(read(with_member(modern, "sliding_window", 0)).distances.at(1).window == 0);
  refused(ErrorCode::config, "config.json", "sliding_window", with_member(modern, "sliding_window", -1));
  // One base for all kinds of layers, as elsewhere.
  refused(ErrorCode::unsupported, "config.json", "rope_parameters.rope_theta", with_member(modern, "rope_parameters", {{"rope_theta", 123.0}}),
          {"full_attention"});
  refused(ErrorCode::config, "config.json", "global_attn_every_n_layers", with_config(modern, [](json& config) {
            config.erase("layer_types");
            config["global_attn_every_n_layers"] = 0;
          }));
  const detail::ModelConfig now = read(modern), before = read(with_config(modern, [](json& config) {
                                                  config.erase("layer_types");
                                                  config.erase("rope_parameters");
                                                  config["global_attn_every_n_layers"] = 3;
                                                  config["global_rope_theta"] = 160000.0;
                                                  config["local_rope_theta"] = 10000.0;
                                                }));
  const detail::ModelConfig neither = read(with_config(modern, [](json& config) {
    config.erase("layer_types");
    config.erase("rope_parameters");
  }));
  REQUIRE(now.distances.size() == 4);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const bool full = layer % 3 == 0;
    for (const detail::ModelConfig* config : {&now, &before, &neither}) {
      CHECK(config->distances.at(layer).rope_theta == (full ? 160000 : 10000));
      CHECK(config->distances.at(layer).window == (full ? -1 : 4));
    }
  }
}

TEST_CASE("modules.json may list four kinds of modules in a fixed order", "[models]") {
  const Checkpoint checkpoint = stock("tiny-bert-cls");
  const json good = json::parse(checkpoint.modules);
  const auto with_modules = [&](const json& modules) {
    Checkpoint changed = checkpoint;
    changed.modules = bytes_of(modules);
    return changed;
  };
  CHECK(read(checkpoint).normalize);
  CHECK_FALSE(read(with_modules(json::array({good[0], good[1]}))).normalize);
  CHECK_FALSE(read(with_modules(json::array({good[0]}))).normalize);
  json dense = good, later = good, unnamed = good, elsewhere = good, outside = good, several = good, other = good;
  dense[2]["type"] = "sentence_transformers.models.Dense";
  dense[2]["path"] = "2_Dense";
  other[2]["type"] = "sentence_transformers.models.LayerNorm";
  several[2] = dense[2];
  several.push_back(dense[2]);
  unnamed[1].erase("type");
  elsewhere[1]["path"] = "2_Pooling";
  outside[1]["path"] = "../secrets";
  later.push_back(good[2]);
  json early = good;
  early.push_back(dense[2]);
  refused(ErrorCode::format, "modules.json", "2_Dense/config.json", with_modules(dense), {"missing"});
  refused(ErrorCode::unsupported, "modules.json", "module 2", with_modules(other), {"LayerNorm", "Dense", "forward()"});
  refused(ErrorCode::format, "modules.json", "2_Dense/config.json", with_modules(several), {"missing"});
  refused(ErrorCode::unsupported, "modules.json", "module 3", with_modules(early), {"Dense"});
  while (several.size() < 9) several.push_back(dense[2]);
  refused(ErrorCode::unsupported, "modules.json", "the number of modules", with_modules(several), {"at most 8", "9"});
  refused(ErrorCode::unsupported, "modules.json", "the path of Pooling", with_modules(outside), {"../secrets"});
  CHECK(read(with_modules(elsewhere)).poolings == std::vector{Pooling::cls});
  refused(ErrorCode::unsupported, "modules.json", "module 3", with_modules(later), {"Normalize"});
  refused(ErrorCode::unsupported, "modules.json", "module 1", with_modules(unnamed), {"missing"});
  refused(ErrorCode::unsupported, "modules.json", "module 1", with_modules(json::array({good[0], good[2], good[1]})), {"Transformer, Pooling"});
  refused(ErrorCode::unsupported, "modules.json", "module 0", with_modules(json::array({good[1], good[0]})));
  refused(ErrorCode::format, "modules.json", "the file", with_modules(json::object()), {"an array"});
  Checkpoint torn = checkpoint;
  torn.modules.resize(20);
  refused(ErrorCode::format, "modules.json", "the file", torn, {"not valid JSON"});
}

TEST_CASE("1_Pooling/config.json is read in its old and its new form", "[models]") {
  const Checkpoint checkpoint = stock("tiny-bert-cls");
  const auto with_pooling = [&](const json& pooling) {
    Checkpoint changed = checkpoint;
    changed.pooling = bytes_of(pooling);
    return changed;
  };
  struct Mode {
    const char *name, *flag;
    Pooling pooling;
  };
  const Mode modes[] = {{"mean", "mean_tokens", Pooling::mean},
                        {"cls", "cls_token", Pooling::cls},
                        {"max", "max_tokens", Pooling::max},
                        {"lasttoken", "lasttoken", Pooling::lasttoken},
                        {"weightedmean", "weightedmean_tokens", Pooling::weightedmean},
                        {"mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::mean_sqrt_len}};
  using Poolings = std::vector<Pooling>;
  for (const auto& [name, flag, pooling] : modes) {
    CHECK(read(with_pooling({{"pooling_mode", name}, {"include_prompt", true}})).poolings == Poolings{pooling});
    const std::string old = std::string("pooling_mode_") + flag;
    CHECK(read(with_pooling({{old, true}})).poolings == Poolings{pooling});
    CHECK(read(with_pooling({{old, true}, {"pooling_mode", "max"}})).poolings == Poolings{Pooling::max});
  }
  CHECK(read(with_pooling({{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}})).poolings == Poolings{Pooling::cls, Pooling::mean});
  CHECK(read(with_pooling({{"pooling_mode", {"mean", "cls"}}})).poolings == Poolings{Pooling::mean, Pooling::cls});
  CHECK(read(with_pooling(json::object())).poolings == Poolings{Pooling::mean});
  CHECK(read(with_pooling({{"include_prompt", false}})).include_prompt == false);
  const std::string file = "1_Pooling/config.json", what = "the pooling mode";
  refused(ErrorCode::unsupported, file, what, with_pooling({{"pooling_mode", "attention"}}), {"attention", "weightedmean"});
  refused(ErrorCode::unsupported, file, what, with_pooling({{"pooling_mode", {"mean", 5}}}), {"5"});
  refused(ErrorCode::unsupported, file, what, with_pooling({{"pooling_mode", std::vector<std::string>(7, "mean")}}), {});
  refused(ErrorCode::config, file, "pooling_mode_lasttoken", with_pooling({{"pooling_mode_lasttoken", "yes"}}), {"true or false"});
  refused(ErrorCode::format, file, "the file", with_pooling(json::array()), {"an object"});
}

TEST_CASE("a cross-encoder's scores are the output of its activation", "[models]") {
  const auto with_activation = [](const std::string& path) { return with_member(bert(), "sentence_transformers", {{"activation_fn", path}}); };
  const auto function = [&](const char* name) { return read(with_activation(std::string("torch.nn.modules.") + name)).classification_function; };
  CHECK(function("linear.Identity") == detail::ClassificationFunction::none);
  CHECK(function("activation.Sigmoid") == detail::ClassificationFunction::sigmoid);
  CHECK(function("activation.Softmax") == detail::ClassificationFunction::softmax);
  const json identity{{"activation_fn", "torch.nn.modules.linear.Identity"}};
  CHECK(read(with_member(bert(), "sentence_transformers", identity)).text_function == detail::ClassificationFunction::softmax);
  const Checkpoint one = with_member(with_member(bert(), "id2label", {{"0", "relevant"}}), "sentence_transformers", identity);
  CHECK(read(one).text_function == detail::ClassificationFunction::none);
  for (const char* const path : {"torch.nn.modules.activation.Tanh", "mine.Softmax", ""})
    refused(ErrorCode::unsupported, "config.json", "sentence_transformers.activation_fn", with_activation(path), {"Identity, Sigmoid or Softmax"});
}

TEST_CASE("2_Dense/config.json describes a linear map of the pooled vector", "[models]") {
  const Checkpoint checkpoint = stock("tiny-bert-cls");
  const auto with_dense = [&](const json& dense, StateDict weights) {
    Checkpoint changed = checkpoint;
    json modules = json::parse(checkpoint.modules);
    modules[2] = {{"type", "sentence_transformers.models.Dense"}, {"path", "2_Dense"}};
    changed.modules = bytes_of(modules);
    changed.dense = bytes_of(dense);
    changed.dense_weights = write_safetensors(weights);
    return changed;
  };
  const auto tensor = [](const Shape& shape) { return detail::empty_any(shape); };
  const json good{{"in_features", 32}, {"out_features", 5}, {"bias", true}, {"activation_function", "torch.nn.modules.activation.ReLU"}};
  const StateDict weights{{"linear.weight", tensor({5, 32})}, {"linear.bias", tensor({5})}};
  const auto changed = [&](const char* name, const json& value) {
    json dense = good;
    dense[name] = value;
    return with_dense(dense, weights);
  };
  CHECK(read(with_dense(good, weights)).denses.at(0).activation == Activation::relu);
  CHECK(read(changed("activation_function", nullptr)).denses.at(0).activation == Activation::tanh);
  CHECK(read(with_dense(good, weights)).embedding_size(1) == 5);
  const std::string file = "2_Dense/config.json";
  refused(ErrorCode::config, file, "in_features", changed("in_features", 33), {"32, the width of the pooled vector"});
  refused(ErrorCode::config, file, "out_features", changed("out_features", 0), {"a whole number"});
  refused(ErrorCode::unsupported, file, "activation_function", changed("activation_function", "torch.nn.modules.activation.Hardswish"), {"Tanh"});
  refused(ErrorCode::unsupported, file, "activation_function", changed("activation_function", "mine.Tanh"), {"mine.Tanh"});
  refused(ErrorCode::unsupported, file, "use_residual", changed("use_residual", true), {"false"});
  refused(ErrorCode::unsupported, file, "module_input_name", changed("module_input_name", "token_embeddings"), {"sentence_embedding"});
  const std::string names = "2_Dense/model.safetensors";
  check_error({ErrorCode::mismatch, names, "", {"linear.bias"}},
              [&] { detail::ModelLoader(with_dense(good, {{"linear.weight", tensor({5, 32})}}).files()); });
  check_error({ErrorCode::mismatch, names, "", {"(5,31)"}},
              [&] { detail::ModelLoader(with_dense(good, {{"linear.weight", tensor({5, 31})}, {"linear.bias", tensor({5})}}).files()); });
  Checkpoint torn = with_dense(good, weights);
  torn.dense_weights.pop_back();
  check_error({ErrorCode::format, "safetensors", "", {}}, [&] { detail::ModelLoader(torn.files()); });
  torn.dense_weights.clear();
  refused(ErrorCode::format, "modules.json", "2_Dense/model.safetensors", torn, {"missing"});
  // A second Dense takes the first one's vector.
  Checkpoint twice = with_dense(good, weights);
  json modules = json::parse(twice.modules);
  modules[3] = {{"type", "sentence_transformers.models.Dense"}, {"path", "3_Dense"}};
  twice.modules = bytes_of(modules);
  refused(ErrorCode::format, "modules.json", "3_Dense/config.json", twice, {"missing"});
  const std::vector<std::uint8_t> next = bytes_of(json{{"in_features", 6}, {"out_features", 3}});
  detail::ModelFiles files = twice.files();
  files.denses.push_back({next, twice.dense_weights});
  check_error({ErrorCode::config, "3_Dense/config.json", "in_features", {"5, the output width of the Dense before it", "6"}},
              [&] { detail::read_model_config(files); });
}

TEST_CASE("the truncation length comes from the first file that has one and is at most the number of positions", "[models]") {
  const Checkpoint checkpoint = stock("tiny-bert-cls");
  const auto length = [&](const json& sentence, const json& tokenizer) {
    Checkpoint changed = checkpoint;
    changed.sentence_bert_config = sentence.is_null() ? Bytes{} : bytes_of(sentence);
    changed.tokenizer_config = tokenizer.is_null() ? Bytes{} : bytes_of(tokenizer);
    return read(changed).default_length;
  };
  CHECK(length({{"max_seq_length", 16}}, {{"model_max_length", 20}}) == 16);
  CHECK(length({{"max_seq_length", nullptr}}, {{"model_max_length", 20}}) == 20);
  CHECK(length(nullptr, {{"model_max_length", 20}}) == 20);
  CHECK(length(nullptr, {{"model_max_length", 1e30}}) == 64);
  CHECK(length(nullptr, nullptr) == 64);
  CHECK(length({{"max_seq_length", 512}}, nullptr) == 64);
  for (const json& value : {json(0), json(-1), json(1.5), json("16")}) {
    Checkpoint changed = checkpoint;
    changed.sentence_bert_config = bytes_of(json{{"max_seq_length", value}});
    refused(ErrorCode::config, "sentence_bert_config.json", "max_seq_length", changed, {"a whole number"});
  }
  // RoBERTa and MPNet reserve positions for padding.
  CHECK(read(with_member(stock("tiny-roberta"), "max_position_embeddings", 40)).max_length == 38);
  CHECK(read(with_member(stock("tiny-mpnet"), "max_position_embeddings", 40)).max_length == 38);
}

TEST_CASE("a model above the memory limit is a MEMORY error when its configuration is read", "[models]") {
  const auto huge = [](std::int64_t layers, std::int64_t hidden, std::int64_t inner) {
    return with_config(bert(), [&](json& config) {
      config["num_hidden_layers"] = layers;
      config["hidden_size"] = hidden;
      config["intermediate_size"] = inner;
    });
  };
  {
    const Limit limit(std::uint64_t{1} << 34);
    too_large(huge(10'000, 65'536, 65'536));
    too_large(huge(10'000, 2'147'483'644, 2'147'483'647));
    too_large(with_member(bert(), "vocab_size", 2'147'483'647));
  }
  {
    const Limit limit(60'000);
    too_large(bert());
  }
  {
    const Limit limit(220'000);
    CHECK_NOTHROW(detail::ModelLoader(with_member(bert(), "num_hidden_layers", 1).files()));
    too_large(bert());
  }
  CHECK_NOTHROW(load(bert()));
}

}  // namespace models_config_test
}  // namespace attn::test
