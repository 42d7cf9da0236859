#include "attn/store/key_value_cache.hpp"

#include <utility>

#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {
namespace {

constexpr std::string_view kCacheOp = "create_cache";

}  // namespace

KeyValueCache::KeyValueCache(std::shared_ptr<const void> model, const Sizes& sizes, std::int64_t batch, std::int64_t max_length)
    : model_(std::move(model)), size_(0), batch_(batch), max_length_(max_length) {
  constexpr std::int64_t kMost = 0x7fffffff;
  if (batch < 1 || batch > kMost) detail::fail(ErrorCode::config, kCacheOp, "batch_size", {"a number of at least 1"}, {batch});
  const Shape all{2 * sizes.layers, batch, sizes.heads, max_length, sizes.width};
  MemoryEstimate memory(kCacheOp);
  memory.add("the cache", all);
  memory.check("the cache");
  size_ = static_cast<std::size_t>(batch * sizes.heads * max_length * sizes.width);
  numbers_ = AlignedFloats(2 * static_cast<std::size_t>(sizes.layers) * size_);
}

KeyValueCache::Layer KeyValueCache::layer(std::size_t index) {
  float* const keys = numbers_.data() + 2 * index * size_;
  return {keys, keys + size_};
}

void KeyValueCache::truncate(std::int64_t length) {
  if (length < 0 || length > length_) detail::fail(ErrorCode::out_of_range, "truncate", "length", {"a number from 0 to ", length_}, {length});
  length_ = length;
}

}  // namespace attn
