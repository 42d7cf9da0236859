#include "c/handles.hpp"

using attn::c::guarded, attn::c::making, attn::c::check_pointer;

extern "C" {

attn_status attn_tensors_new(attn_tensors** tensors, attn_error** error) {
  return making("attn_tensors_new", tensors, error, [] { return std::make_unique<attn_tensors>(); });
}

void attn_tensors_free(attn_tensors* tensors) { delete tensors; }

size_t attn_tensors_count(const attn_tensors* tensors) { return tensors != nullptr ? tensors->entries.size() : 0; }

const char* attn_tensors_name(const attn_tensors* tensors, size_t index) {
  if (index >= attn_tensors_count(tensors)) return nullptr;
  return std::next(tensors->entries.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
}

bool attn_tensors_get(const attn_tensors* tensors, const char* name, attn_tensor* tensor) {
  if (tensors == nullptr || name == nullptr) return false;
  const auto found = tensors->entries.find(std::string_view(name));
  if (found == tensors->entries.end()) return false;
  const attn_tensors::Entry& entry = found->second;
  if (tensor != nullptr) *tensor = {entry.dtype, entry.data.get(), entry.dims.size(), entry.dims.data()};
  return true;
}

bool attn_tensors_text(const attn_tensors* tensors, const char* name, size_t index, attn_text* text) {
  if (tensors == nullptr || name == nullptr) return false;
  const auto found = tensors->texts.find(std::string_view(name));
  if (found == tensors->texts.end() || index >= found->second.size()) return false;
  if (text != nullptr) *text = {found->second[index].c_str(), found->second[index].size()};
  return true;
}

attn_status attn_tensors_set(attn_tensors* tensors, const char* name, const attn_view* view, attn_error** error) {
  return guarded(error, [&] {
    const char* op = "attn_tensors_set";
    check_pointer(op, tensors, "tensors");
    check_pointer(op, name, "name");
    check_pointer(op, view, "view");
    const attn::TensorView from = attn::c::to_view(op, "view", *view);
    attn::c::Numbers<float> numbers(from.shape);
    attn::c::copy_numbers(from, {numbers.data(), numbers.size()});
    tensors->put(name, std::move(numbers));
  });
}

attn_status attn_read_safetensors(const char* path, attn_tensors** tensors, attn_error** error) {
  return making("attn_read_safetensors", tensors, error, [&] {
    check_pointer("attn_read_safetensors", path, "path");
    return attn::c::to_tensors(attn::read_safetensors(std::string(path)));
  });
}

}  // extern "C"
