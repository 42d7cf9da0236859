#include "attn/train/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "attn/layers/state_dict.hpp"
#include "attn/memory/panels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/interruption.hpp"

namespace attn {

namespace detail {

double check_at_least_0(std::string_view op, std::string_view name, double value, bool above) {
  if (!std::isfinite(value) || value < 0 || (above && value == 0))
    fail(ErrorCode::config, op, name, {"a finite number ", above ? "above 0" : "of at least 0"}, {value});
  return value;
}

}  // namespace detail

using detail::ParameterRef;

struct Optimizer::Work {
  Kept* kept;
  detail::StateTensor tensor;
  const float* gradient;
};

Optimizer::Optimizer(std::vector<ModuleRef> modules, const Common& common)
    : name_(common.name),
      modules_(std::move(modules)),
      learning_rate_(detail::check_at_least_0(name_, "learning_rate", common.learning_rate, true)),
      first_learning_rate_(learning_rate_),
      slot_names_(common.slots.begin(), common.slots.end()),
      has_step_(common.has_step) {
  detail::check_at_least_0(name_, "weight_decay", common.weight_decay);
  for (std::size_t i = 0; i < common.groups.size(); ++i) {
    const ParameterGroup& group = common.groups[i];
    if (!group.names) detail::fail(ErrorCode::argument, name_, detail::text({"groups[", i, "].names"}), {"a function of a name"}, {"empty"});
    if (group.learning_rate) detail::check_at_least_0(name_, detail::text({"groups[", i, "].learning_rate"}), *group.learning_rate, true);
    if (group.weight_decay) detail::check_at_least_0(name_, detail::text({"groups[", i, "].weight_decay"}), *group.weight_decay);
  }
  detail::check_modules(name_, modules_);
  for (std::size_t module = 0; module < modules_.size(); ++module)
    for (const auto& [name, tensor] : modules_[module].state_tensors()) {
      Kept kept{.module = module, .name = name, .shape = tensor.shape(), .learning_rate = learning_rate_, .weight_decay = common.weight_decay};
      const auto group = std::find_if(common.groups.begin(), common.groups.end(), [&](const ParameterGroup& each) { return each.names(name); });
      if (group != common.groups.end()) {
        kept.learning_rate = group->learning_rate.value_or(kept.learning_rate);
        kept.weight_decay = group->weight_decay.value_or(kept.weight_decay);
      }
      parameters_.push_back(std::move(kept));
    }
}

void Optimizer::set_learning_rate(double learning_rate) { learning_rate_ = detail::check_at_least_0(name_, "learning_rate", learning_rate); }

void Optimizer::zero_grad() {
  detail::check_modules(name_, modules_);
  for (const ModuleRef& module : modules_) module.gradients().zero();
}

void Optimizer::step() {
  const detail::FloatEnvironment environment;
  detail::check_modules(name_, modules_);
  std::vector<detail::StateTensors> tensors;
  for (const ModuleRef& module : modules_) tensors.push_back(module.state_tensors());
  std::vector<Work> work;
  MemoryEstimate memory(name_);
  for (Kept& kept : parameters_) {
    // The caller may have moved a module with other shapes into this one.
    const auto found = tensors[kept.module].find(kept.name);
    if (found == tensors[kept.module].end() || found->second.shape() != kept.shape)
      detail::fail(ErrorCode::argument, name_, detail::text({"modules[", kept.module, "]"}), {"a module with ", kept.name, " of shape ", kept.shape},
                   {"another"});
    const float* const gradient = modules_[kept.module].gradients().find(kept.name);
    if (gradient == nullptr) continue;
    if (kept.steps == 0)
      for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) memory.add(kept.name, kept.shape);
    work.push_back({&kept, std::move(found->second), gradient});
  }
  memory.check("what the optimiser keeps");
  for (const Work& each : work)
    for (std::size_t slot = 0; slot < slot_names_.size(); ++slot)
      each.kept->slots[slot].resize(static_cast<std::size_t>(checked_size(each.kept->shape, name_, each.kept->name)));
  run(work);
}

void Optimizer::run(std::span<const Work> work) const {
  // Numbers per task, about. The interleaved rows of packed weights are copied into a cached buffer.
  constexpr std::size_t kNumbers = 16384;
  struct Task {
    detail::Panels<float>* panels;
    Rates rates;
    Numbers numbers;  ///< values is null for a packed weight
    std::size_t row, rows, width;
  };
  const std::size_t height = detail::Panels<float>::height();
  std::vector<Task> tasks;
  std::size_t buffer = 0;
  double size = 0;
  for (const auto& [kept, tensor, gradient] : work) {
    const double proportion = learning_rate_ / first_learning_rate_;
    const Rates rates{kept->learning_rate * proportion, kept->weight_decay, kept->steps + 1};
    std::size_t before = 0;
    for (const ParameterRef& piece : tensor.pieces) {
      float* const values = piece.values();
      const std::size_t all = piece.size(), width = values != nullptr ? 1 : piece.row_size(), rows = all / std::max<std::size_t>(width, 1);
      const std::size_t step = values != nullptr ? kNumbers : (kNumbers / (height * width) + 1) * height;
      for (std::size_t row = 0; row < rows; row += step) {
        const std::size_t count = std::min(step, rows - row), at = before + row * width;
        Numbers numbers{values != nullptr ? values + row : nullptr, gradient + at, {}, count * width};
        for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) numbers.slots[slot] = kept->slots[slot].data() + at;
        tasks.push_back({piece.panels(), rates, numbers, row, count, width});
      }
      if (values == nullptr) buffer = std::max(buffer, std::min(height, rows) * width);
      before += all;
    }
    size += static_cast<double>(before);
  }
  // A number costs about 16 multiply-adds: a square root, two divisions and seven memory accesses.
  const unsigned workers = parallel::workers_for(tasks.size(), 16 * size);
  std::vector<float> buffers(workers * buffer);
  // From here on only an executor can fail, after the last task.
  const detail::Uninterrupted writing;
  for (const Work& each : work) ++each.kept->steps;
  for (const ModuleRef& module : modules_) module.weights_changed();
  parallel::run(tasks.size(), workers, [&](std::size_t index, unsigned worker) noexcept {
    const Task& task = tasks[index];
    if (task.numbers.values != nullptr) return update(task.rates, task.numbers);
    float* const values = buffers.data() + worker * buffer;
    const std::size_t width = task.width;
    for (std::size_t row = 0; row < task.rows; row += height) {
      Numbers numbers = task.numbers;
      const std::size_t rows = std::min(height, task.rows - row), at = row * width;
      numbers.values = values;
      numbers.gradient += at;
      for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) numbers.slots[slot] += at;
      numbers.count = rows * width;
      task.panels->get_panel(task.row + row, rows, width, values);
      update(task.rates, numbers);
      task.panels->set_panel(task.row + row, rows, width, values);
    }
  });
}

std::string Optimizer::state_name(const Kept& kept, std::string_view what) const { return detail::text({kept.module, ".", kept.name, ".", what}); }

std::map<std::string, Shape> Optimizer::state_shapes() const {
  std::map<std::string, Shape> shapes;
  for (const Kept& kept : parameters_) {
    if (kept.steps == 0) continue;
    for (const std::string_view slot : slot_names_) shapes.emplace(state_name(kept, slot), kept.shape);
    if (has_step_) shapes.emplace(state_name(kept, "step"), Shape{});
  }
  return shapes;
}

void Optimizer::save_state(const StateTarget& target) const {
  for (const Kept& kept : parameters_) {
    if (kept.steps == 0) continue;
    for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) detail::save_data(target, state_name(kept, slot_names_[slot]), kept.slots[slot]);
    const auto steps = static_cast<float>(kept.steps);
    detail::save_data(target, state_name(kept, "step"), {&steps, 1});
  }
}

void Optimizer::load_state(const StateView& state) {
  constexpr std::string_view kOp = "load_state_dict";
  constexpr std::int64_t kMostSteps = 1 << 24;  // above this, float32 cannot represent every integer
  detail::Mismatch mismatch;
  std::map<std::string, Shape> known;
  std::vector<std::string> names;
  MemoryEstimate memory(kOp);
  for (const Kept& kept : parameters_) {
    std::map<std::string, Shape> own;
    for (const std::string_view slot : slot_names_) own.emplace(state_name(kept, slot), kept.shape);
    if (has_step_) own.emplace(state_name(kept, "step"), Shape{});
    const bool any = std::any_of(own.begin(), own.end(), [&](const auto& entry) { return state.contains(entry.first); });
    for (const auto& [name, shape] : own) {
      memory.add(name, shape);
      const auto found = state.find(name);
      if (found == state.end() && any) mismatch.missing.push_back(name);
      if (found != state.end() && found->second.shape != shape)
        mismatch.mis_shaped.push_back(detail::text({name, " has shape ", found->second.shape, ", expected ", shape}));
    }
    known.merge(own);
  }
  for (const auto& [name, tensor] : state)
    if (!known.contains(name)) mismatch.unexpected.push_back(name);
  mismatch.check(kOp, "state");
  memory.check("the state");

  std::vector<Kept> next;
  for (const Kept& now : parameters_) {
    Kept& kept = next.emplace_back(
        Kept{.module = now.module, .name = now.name, .shape = now.shape, .learning_rate = now.learning_rate, .weight_decay = now.weight_decay});
    for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) {
      const float* const values = detail::find_data(state, state_name(kept, slot_names_[slot]));
      if (values == nullptr) continue;
      kept.slots[slot].assign(values, values + checked_size(kept.shape, kOp, kept.name));
      kept.steps = 1;  // even if the state lacks the count
    }
    const std::string name = state_name(kept, "step");
    const float* const steps = has_step_ ? detail::find_data(state, name) : nullptr;
    if (steps == nullptr) continue;
    if (!(*steps >= 1 && *steps <= static_cast<float>(kMostSteps) && *steps == std::floor(*steps)))
      detail::fail(ErrorCode::argument, kOp, name, {"a whole number from 1 to ", kMostSteps}, {*steps});
    kept.steps = static_cast<std::int64_t>(*steps);
  }
  parameters_ = std::move(next);
}

}  // namespace attn
