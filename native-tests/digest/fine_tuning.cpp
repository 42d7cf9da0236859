// Keep in step with wasm-tests/support/digest_fine_tuning.ts.
#include "fine_tuning.hpp"

#include <cstdio>
#include <map>

#include "draw.hpp"
#include "support/testdata.hpp"

namespace digest {
namespace fine_tuning_calls {

const std::vector<attn::FineTuneExample> kExamples{
    {"a warm , funny and clever film", "good"},      {"dull and far too long", "bad"},
    {"beautifully acted from start to end", "good"}, {"a boring mess without any ideas", "bad"},
    {"one of the best of the year", "good"},         {"the jokes are stale and the plot is stupid", "bad"},
    {"moving , honest and alive", "good"},           {"tedious", "bad"},
    {"it is what it is", "neither", "no more"},
};

const std::vector<attn::FineTuneExample> kTexts{
    {.text = "the cat sat on the mat"},
    {.text = " four", .prompt = "two and two is"},
    {.text = "once upon a time there was a cat that sat on a mat"},
    {.text = " no. <|endoftext|>", .prompt = "Was it good?"},
};

const std::vector<std::string> kLabels{"bad", "good", "neither"};

struct Run {
  const char* name;
  attn::FineTuneOptions options;
};

const std::vector<Run> kRuns{
    {"tiny-bert-cls", {.epochs = 4, .batch_size = 3, .learning_rate = 3e-3, .labels = kLabels, .seed = 1}},
    {"tiny-distilbert", {.epochs = 3, .batch_size = 2, .learning_rate = 1e-2, .labels = kLabels, .seed = 2, .validation = 0.25}},
    {"tiny-mpnet", {.epochs = 4, .batch_size = 3, .learning_rate = 3e-3, .layers = 1, .labels = kLabels, .seed = (std::uint64_t{1} << 40) + 3}},
    {"tiny-mpnet-mean", {.epochs = 4, .batch_size = 3, .layers = 0, .seed = 4}},
    {"tiny-gpt2", {.epochs = 4, .batch_size = 2, .learning_rate = 3e-3, .seed = 5}},
    {"tiny-gemma-2", {.epochs = 3, .batch_size = 3, .learning_rate = 3e-3, .layers = 1, .seed = 6, .validation = 0.25}},
};

}  // namespace fine_tuning_calls
using namespace fine_tuning_calls;

std::vector<std::string> fine_tuning_lines() {
  std::vector<std::string> lines;
  for (const Run& run : kRuns) {
    attn::TextModel model = attn::TextModel::load(attn::test::testdata("models") / run.name);
    Hash hash;
    attn::FineTuneOptions options = run.options;
    options.on_progress = [&](const attn::FineTuneProgress& progress) {
      hash.add(Values{{1}, {nearest(progress.loss)}});
      return true;
    };
    const bool of_tokens = model.task() == attn::Task::text_generation;
    const attn::FineTuneResult result = model.fine_tune(of_tokens ? kTexts : kExamples, options);
    hash.add(Values{{2}, {nearest(result.loss), nearest(result.validation_accuracy.value_or(-1))}});
    const auto state = model.state_dict();
    const std::map<std::string, attn::AnyTensor> sorted(state.begin(), state.end());
    for (const auto& [name, tensor] : sorted) hash.add(values_of(tensor));
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash.value()));
    lines.push_back(std::string(text) + ' ' + run.name);
  }
  return lines;
}

}  // namespace digest
