#include "signature.hpp"

#include <emscripten/threading.h>

#include <array>
#include <limits>

namespace attn::bindings {
namespace {

const Descriptor* descriptor_at(double leaf) { return reinterpret_cast<const Descriptor*>(static_cast<Address>(leaf)); }

std::vector<std::int64_t> int32s_of(const Descriptor& descriptor) {
  const auto* values = reinterpret_cast<const std::int32_t*>(descriptor.data);
  return {values, values + checked_size(shape_of(descriptor), "attn", "the ids")};
}

MaskView read_mask(const Descriptor& descriptor) {
  const auto kind = static_cast<MaskKind>(descriptor.kind);
  const Shape shape = shape_of(descriptor);
  if (descriptor.width == sizeof(float)) return {kind, reinterpret_cast<const float*>(descriptor.data), shape};
  return {kind, reinterpret_cast<const std::uint8_t*>(descriptor.data), shape};
}

constexpr std::array<std::string_view, 3> kMaskKindNames{"attend", "block", "additive"};

constexpr std::span kAttentionTraces(kTraceNames.data(), kAttentionTraceCount);

void next(std::string& json) {
  if (json.back() != '[') json += ',';
}

struct Signature {
  const char *owner, *name, *result;
  Caller call;
};

std::vector<Signature>& all() {
  static std::vector<Signature> list;
  return list;
}

}  // namespace

void Arguments::describe(const char* name, const char* kind, bool required, std::span<const std::string_view> choices) {
  std::string& json = *signature_;
  next(json);
  json.append("{\"name\":\"").append(name).append("\",\"kind\":\"").append(kind).append("\"");
  if (required) json += ",\"required\":true";
  if (!choices.empty()) {
    json += ",\"choices\":[";
    for (const std::string_view choice : choices) {
      next(json);
      json.append("\"").append(choice).append("\"");
    }
    json += ']';
  }
  json += '}';
}

double Arguments::take(const char* name, const char* kind, bool required, std::span<const std::string_view> choices) {
  if (signature_ == nullptr) return *leaf_++;
  describe(name, kind, required, choices);
  return std::numeric_limits<double>::quiet_NaN();
}

void Arguments::open_members() {
  signature_->pop_back();
  *signature_ += ",\"members\":[";
}

void Arguments::close_members() { *signature_ += "]}"; }

const Descriptor* Arguments::take_descriptor(const char* name, const char* kind, bool required, std::span<const std::string_view> choices) {
  const double leaf = take(name, kind, required, choices);
  return given(leaf) ? descriptor_at(leaf) : nullptr;
}

TensorView Arguments::tensor(const char* name) {
  const Descriptor* descriptor = take_descriptor(name, "tensor", true);
  return descriptor != nullptr ? view_of(*descriptor) : TensorView{};
}

std::optional<TensorView> Arguments::optional_tensor(const char* name) {
  const Descriptor* descriptor = take_descriptor(name, "tensor", false);
  return descriptor != nullptr ? std::optional(view_of(*descriptor)) : std::nullopt;
}

std::span<const std::uint8_t> Arguments::bytes(const char* name, const char* what) {
  const std::string_view choices[] = {what};
  const Descriptor* descriptor = take_descriptor(name, "bytes", true, choices);
  if (descriptor == nullptr) return {};
  return {reinterpret_cast<const std::uint8_t*>(descriptor->data), static_cast<std::size_t>(descriptor->dims[0])};
}

const StateView* Arguments::state(const char* name) {
  const double leaf = take(name, "state", true);
  return given(leaf) ? reinterpret_cast<const StateView*>(static_cast<Address>(leaf)) : nullptr;
}

Arguments::Ids Arguments::ids(const char* name) {
  const Descriptor* descriptor = take_descriptor(name, "ids", true);
  if (descriptor == nullptr) {
    describe("dims", "dims", false, {});
    return {};
  }
  Ids ids{int32s_of(*descriptor), shape_of(*descriptor)};
  return ids;
}

std::optional<Arguments::Ids> Arguments::optional_ids(const char* name) {
  const Descriptor* descriptor = take_descriptor(name, "ids", false);
  if (descriptor == nullptr) return std::nullopt;
  return Ids{int32s_of(*descriptor), shape_of(*descriptor)};
}

std::variant<std::int64_t, TensorView> Arguments::vector_or_id(const char* name) {
  const double id = take(name, "vector_or_id", true);
  if (signature_ != nullptr) return {};
  const double vector = *leaf_++;
  if (given(id)) return static_cast<std::int64_t>(id);
  return view_of(*descriptor_at(vector));
}

bool Arguments::option(const char* name, Window& value) {
  const double left = take(name, "window", false);
  if (signature_ != nullptr) return false;
  const double right = *leaf_++;
  if (given(left)) value = {static_cast<std::int64_t>(left), static_cast<std::int64_t>(right)};
  return given(left);
}

bool Arguments::option(const char* name, std::optional<Mask>& value) {
  const Descriptor* descriptor = take_descriptor(name, "mask", false, kMaskKindNames);
  if (descriptor != nullptr) value.emplace(read_mask(*descriptor));
  return descriptor != nullptr;
}

bool Arguments::option(const char* name, std::span<const std::uint8_t>& value, const char* what) {
  const std::string_view choices[] = {what};
  const Descriptor* descriptor = take_descriptor(name, "bytes", false, choices);
  if (descriptor != nullptr) value = {reinterpret_cast<const std::uint8_t*>(descriptor->data), static_cast<std::size_t>(descriptor->dims[0])};
  return descriptor != nullptr;
}

bool Arguments::option(const char* name, std::vector<std::int64_t>& value) {
  const Descriptor* descriptor = take_descriptor(name, "indices", false);
  if (descriptor != nullptr) value = int32s_of(*descriptor);
  return descriptor != nullptr;
}

bool Arguments::option(const char* name, Trace& value, std::span<const std::string_view> names) {
  std::uint32_t bits = 0;
  const bool given = assign(take(name, "names", false, names), bits);
  if (given) value = Trace::from_bits(bits);
  return given;
}

bool Arguments::option(const char* name, Trace& value) {
  const double leaf = take(name, "trace", false, kAttentionTraces);
  if (!given(leaf)) return false;
  value = leaf < 0 ? Trace::all() : Trace::from_bits(static_cast<std::uint32_t>(leaf));
  return true;
}

Address run(Address frame, void* self, Caller call) {
  return guard([&] {
    Arguments arguments(frame);
    auto result = std::make_unique<Result>();
    call(self, arguments, result.get());
    return result.release()->address();
  });
}

void add_signature(const char* owner, const char* name, const char* result, Caller call) {
  // Each thread runs the Embind blocks, but the list is shared.
  if (emscripten_is_main_runtime_thread()) all().push_back({owner, name, result, call});
}

std::string signatures() {
  std::string json = "[";
  for (const Signature& signature : all()) {
    next(json);
    json.append("{\"name\":\"").append(signature.name).append("\",\"result\":\"").append(signature.result).append("\"");
    if (signature.owner != nullptr) json.append(",\"owner\":\"").append(signature.owner).append("\"");
    json += ",\"arguments\":[";
    Arguments arguments(json);
    signature.call(nullptr, arguments, nullptr);
    json += "]}";
  }
  return json + "]";
}

}  // namespace attn::bindings
