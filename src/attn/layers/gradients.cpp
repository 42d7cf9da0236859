#include "attn/layers/gradients.hpp"

#include <algorithm>
#include <utility>

#include "attn/layers/state_dict.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

AlignedFloats room_for(std::string_view name, const Shape& shape) {
  return AlignedFloats(static_cast<std::size_t>(checked_size(shape, "gradients", name)));
}

}  // namespace

void Gradients::reserve(const std::map<std::string, Shape>& shapes) {
  const auto count = [&] {
    for (const auto& [name, shape] : shapes)
      if (!entries_.contains(name)) counted(shape, name);
  };
  check_memory("gradients", count, "the gradients");
  for (const auto& [name, shape] : shapes) {
    if (entries_.contains(name)) continue;
    entries_.emplace(name, Entry{shape, room_for(name, shape)});
  }
}

float* Gradients::at(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  if (!counts() && !std::exchange(entry.is_there, true)) std::fill_n(entry.values.data(), entry.values.size(), 0.0F);
  return entry.values.data();
}

float* Gradients::fill(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  if (!counts()) found->second.is_there = true;
  return found->second.values.data();
}

Gradients Gradients::staging(const std::map<std::string, Shape>& shapes) {
  Gradients gradients;
  for (const auto& [name, shape] : shapes) {
    const auto found = entries_.find(name);
    const bool is_missing = found == entries_.end() || found->second.is_there;
    if (is_missing || counts()) gradients.entries_.emplace(name, Entry{shape, is_missing ? room_for(name, shape) : AlignedFloats(0)});
  }
  for (const auto& [name, shape] : shapes)
    if (const auto found = entries_.find(name); found != entries_.end() && !found->second.is_there && !counts())
      gradients.entries_.insert(entries_.extract(found));
  return gradients;
}

const float* Gradients::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.is_there ? found->second.values.data() : nullptr;
}

void Gradients::add(Gradients& more) noexcept {
  const FloatEnvironment environment;
  for (auto& [name, entry] : entries_) {
    const auto found = more.entries_.find(name);
    if (found == more.entries_.end() || !found->second.is_there) continue;
    if (!entry.is_there)
      std::swap(entry, found->second);
    else
      for (std::size_t i = 0; i < entry.values.size(); ++i) entry.values.data()[i] += found->second.values.data()[i];
  }
  entries_.merge(more.entries_);
}

void Gradients::zero() {
  for (auto& [name, entry] : entries_) entry.is_there = false;
}

std::map<std::string, Shape> Gradients::shapes(bool with_room) const {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, entry] : entries_)
    if (entry.is_there || with_room) shapes.emplace(name, entry.shape);
  return shapes;
}

GradientPlace::GradientPlace(GradientPlace&& other) noexcept : shared_(std::move(other.shared_)) {
  if (shared_ != nullptr) shared_->place = this;
}

GradientPlace& GradientPlace::operator=(GradientPlace&& other) noexcept {
  if (this == &other) return *this;
  if (shared_ == nullptr) {
    shared_ = std::move(other.shared_);
    if (shared_ != nullptr) shared_->place = this;
    return *this;
  }
  shared_->weights_changed();
  if (other.shared_ != nullptr) {
    std::swap(shared_->gradients, other.shared_->gradients);
    std::swap(shared_->kept, other.shared_->kept);
  } else {
    shared_->gradients.clear();
  }
  other.leave();
  return *this;
}

const std::shared_ptr<GradientPlace::Shared>& GradientPlace::share() {
  if (shared_ == nullptr) {
    shared_ = std::make_shared<Shared>();
    shared_->place = this;
  }
  return shared_;
}

void GradientPlace::leave() noexcept {
  if (shared_ == nullptr) return;
  shared_->place = nullptr;
  shared_->kept.reset();
  shared_->gradients.clear();
  shared_.reset();
}

void add_gradients(Gradients& gradients, const std::map<std::string, Shape>& parameters, const StateView& more) {
  const FloatEnvironment environment;
  Mismatch mismatch;
  std::map<std::string, Shape> shapes;
  for (const auto& [name, gradient] : more) {
    const auto found = parameters.find(name);
    if (found == parameters.end())
      mismatch.unexpected.push_back(name);
    else if (gradient.shape != found->second)
      mismatch.mis_shaped.push_back(text({name, " has shape ", gradient.shape, ", expected ", found->second}));
    else
      shapes.emplace(name, gradient.shape);
  }
  mismatch.check("add_gradients", "gradients");
  gradients.reserve(shapes);
  for (const auto& [name, gradient] : more) {
    float* const sum = gradients.at(name);
    const auto size = static_cast<std::size_t>(checked_size(gradient.shape, "add_gradients", name));
    for (std::size_t i = 0; i < size; ++i) sum[i] += gradient.data[i];
  }
}

}  // namespace attn::detail
