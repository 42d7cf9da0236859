#include "attn/memory/key_value_cache.hpp"

#include <algorithm>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {
namespace {

constexpr std::string_view kCacheOp = "create_cache";

}  // namespace

KeyValueCache::KeyValueCache(std::shared_ptr<const void> model, const Sizes& sizes, std::int64_t batch, std::int64_t max_length)
    : model_(std::move(model)), batch_(batch), max_length_(max_length), heads_(0) {
  constexpr std::int64_t kMost = 0x7fffffff;
  if (batch < 1 || batch > kMost) detail::fail(ErrorCode::config, kCacheOp, "batch_size", {"a number of at least 1"}, {batch});
  const auto whole_panels = [nr = static_cast<std::int64_t>(kernels::best().nr)](std::int64_t n) { return (n + nr - 1) / nr * nr; };
  MemoryEstimate memory(kCacheOp);
  memory.add("the keys", {sizes.layers, batch, sizes.heads, whole_panels(max_length), sizes.width});
  memory.add("the values", {sizes.layers, batch, sizes.heads, max_length, whole_panels(sizes.width)});
  memory.check("the cache");
  const auto layers = static_cast<std::size_t>(sizes.layers), room = static_cast<std::size_t>(max_length),
             width = static_cast<std::size_t>(sizes.width);
  heads_ = static_cast<std::size_t>(batch * sizes.heads);
  first_ = {.keys = {nullptr, room, width}, .values = {nullptr, room, width}};
  numbers_ = AlignedFloats(layers * heads_ * (first_.keys.size() + first_.values.size()));
  summable_.resize(layers * heads_);
}

detail::PackedHeads KeyValueCache::append(std::size_t layer, std::int64_t tokens, const float* keys, const float* values) {
  detail::PackedHeads all = first_;
  all.keys.data = numbers_.data() + layer * heads_ * (all.keys.size() + all.values.size());
  all.values.data = all.keys.data + heads_ * all.keys.size();
  all.summable = summable_.data() + layer * heads_;
  const std::size_t in_batch = heads_ / static_cast<std::size_t>(batch_), row = in_batch * all.keys.width;
  const auto first = static_cast<std::size_t>(length_), count = static_cast<std::size_t>(tokens);
  constexpr double kMoveCost = 4;  // in multiply-adds
  const unsigned workers = parallel::workers_for(heads_, 2 * kMoveCost * static_cast<double>(static_cast<std::size_t>(batch_) * count * row));
  parallel::run(heads_, workers, [&](std::size_t head, unsigned) noexcept {
    const std::size_t start = head / in_batch * count * row + head % in_batch * all.keys.width;
    all.keys.set(head, first, count, keys + start, static_cast<std::ptrdiff_t>(row));
    all.values.set(head, first, count, values + start, static_cast<std::ptrdiff_t>(row));
    std::int64_t& summable = all.summable[head];
    summable = std::min(summable, length_);
    if (summable == length_ && all.values.all_finite(head, first, count, detail::kSumFactor)) summable += tokens;
  });
  return all;
}

void KeyValueCache::truncate(std::int64_t length) {
  if (length < 0 || length > length_) detail::fail(ErrorCode::out_of_range, "truncate", "length", {"a number from 0 to ", length_}, {length});
  length_ = length;
}

}  // namespace attn
