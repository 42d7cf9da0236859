#include "attn/models/families/bert.hpp"

// ERNIE (Sun et al. 2019, 2020), transformers' ErnieModel: BERT with task types.
namespace attn::detail {
namespace ernie {

constexpr std::string_view kTypes[] = {"ernie"};
constexpr std::string_view kIgnored[] = {"cls.", "pooler.", "ernie.pooler."};

constexpr TensorNames names() {
  TensorNames all = kBertNames;
  all.task_type_embeddings = "embeddings.task_type_embeddings";
  return all;
}

void configure(const ConfigReader& config, ModelConfig& model) {
  kBert.configure(config, model);
  if (config.flag("use_task_id", false)) model.task_type_vocab_size = config.whole("task_type_vocab_size", 1, 0x7fffffff, 3);
}

}  // namespace ernie

const Family kErnie = bert_family(ernie::kTypes, "Ernie", "ernie.", ernie::kIgnored, &ernie::configure, ernie::names());

}  // namespace attn::detail
