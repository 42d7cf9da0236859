#include "attn/models/image_processor.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <tuple>
#include <vector>

#include "attn/memory/scratch.hpp"
#include "attn/models/image_config.hpp"
#include "attn/models/model_config.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/interruption.hpp"

namespace attn::detail {
namespace {

constexpr const char* kFile = "preprocessor_config.json";

struct Defaults {
  std::string_view processor;
  std::int64_t height, width;  // height 0: the width is that of the shorter side
  int filter;
  bool crops;
  std::array<double, 3> mean, std;
};
constexpr std::array<double, 3> kHalf{0.5, 0.5, 0.5};
constexpr Defaults kDefaults[] = {
    {"ViT", 224, 224, 2, false, kHalf, kHalf},
    {"DeiT", 256, 256, 3, true, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"Bit", 0, 224, 3, true, {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},  // of DINOv2
};

const Defaults& defaults_of(const ConfigReader& config, std::string_view architecture) {
  const char* const name = config.has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
  if (!config.has(name)) {
    const auto* const own =
        std::find_if(std::begin(kDefaults), std::end(kDefaults) - 1, [&](const Defaults& each) { return each.processor == architecture; });
    return *own;  // the last for all others
  }
  const std::string_view type = config.string(name, "");
  for (const Defaults& each : kDefaults) {
    if (!type.starts_with(each.processor)) continue;
    const std::string_view rest = type.substr(each.processor.size());
    if (rest.starts_with("Image") || rest.starts_with("Feature")) return each;
  }
  config.refuse(ErrorCode::unsupported, name, {"ViTImageProcessor, DeiTImageProcessor or BitImageProcessor"}, {type});
}

/// A number for all channels, or one for each.
std::array<double, 3> channels_of(const ConfigReader& config, const char* name, const std::array<double, 3>& otherwise, bool is_divisor) {
  const Json* const json = config.find(name);
  if (json == nullptr) return otherwise;
  const Json::Array* const list = json->array();
  const std::string_view expected = is_divisor ? "three finite numbers other than 0" : "three finite numbers";
  if (list != nullptr && list->size() != 3) config.refuse(ErrorCode::config, name, {expected}, {list->size(), " values"});
  std::array<double, 3> channels;
  for (std::size_t c = 0; c < 3; ++c) {
    const Json& each = list != nullptr ? (*list)[c] : *json;
    const double* const number = each.number();
    if (number == nullptr || !(std::abs(*number) <= 1e6) || (is_divisor && !(std::abs(*number) >= 1e-6)))
      config.refuse(ErrorCode::config, name, {expected}, {words_of(each)});
    channels[c] = *number;
  }
  return channels;
}

std::int64_t side(const ConfigReader& config, const char* name) { return config.whole(name, 1, kMostImageSide); }

/// Bits of PIL's fixed-point weights.
constexpr int kBits = 22;

/// Result places that are computed.
struct Span {
  std::int64_t begin, end;

  std::int64_t size() const { return end - begin; }
};

/// As PIL's precompute_coeffs() and normalize_coeffs_8bpc().
struct Taps {
  std::vector<std::int64_t> first, count;  ///< by result place of the span
  std::vector<std::int64_t> weights;       ///< `most` for each result place
  std::size_t most;

  static std::size_t most_of(int filter, std::int64_t from, std::int64_t to) {
    return static_cast<std::size_t>(2.0 * (filter - 1) * std::max(static_cast<double>(from) / static_cast<double>(to), 1.0)) + 2;
  }

  Taps(int filter, std::int64_t from, std::int64_t to, const Span& span)
      : first(static_cast<std::size_t>(span.size())),
        count(first.size()),
        weights(first.size() * most_of(filter, from, to)),
        most(most_of(filter, from, to)) {
    const double scale = static_cast<double>(from) / static_cast<double>(to), width = std::max(scale, 1.0), support = (filter - 1) * width;
    std::vector<double> own(most);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const double centre = (static_cast<double>(span.begin + static_cast<std::int64_t>(i)) + 0.5) * scale;
      const auto begin = static_cast<std::int64_t>(std::max(std::floor(centre - support + 0.5), 0.0));
      const auto end = static_cast<std::int64_t>(std::min(std::floor(centre + support + 0.5), static_cast<double>(from)));
      double sum = 0;
      for (std::int64_t place = begin; place < end; ++place) {
        const double x = std::abs((static_cast<double>(place) - centre + 0.5) / width);
        sum += own[static_cast<std::size_t>(place - begin)] = filter == 2 ? std::max(1 - x, 0.0) : cubic(x);
      }
      first[i] = begin;
      count[i] = end - begin;
      for (std::size_t tap = 0; tap < static_cast<std::size_t>(end - begin); ++tap)
        weights[i * most + tap] = std::llround(own[tap] / sum * (1 << kBits));
    }
  }

 private:
  /// Keys' cubic with a = -0.5.
  static double cubic(double x) {
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
  }
};

struct Line {
  const std::uint8_t* from;
  std::ptrdiff_t step;  ///< from one pixel to the next
  std::uint8_t* to;     ///< RGB
  std::ptrdiff_t to_step;
};

/// Resizes one line of pixels; grey is read for all three channels.
void resize_line(const Taps& taps, std::int64_t channels, const Line& line) {
  const std::ptrdiff_t green = channels > 1 ? 1 : 0;
  std::uint8_t* to = line.to;
  for (std::size_t i = 0; i < taps.first.size(); ++i, to += line.to_step) {
    std::int64_t sums[3] = {1 << (kBits - 1), 1 << (kBits - 1), 1 << (kBits - 1)};
    const std::uint8_t* pixel = line.from + taps.first[i] * line.step;
    const std::int64_t* const weights = taps.weights.data() + i * taps.most;
    for (std::int64_t tap = 0; tap < taps.count[i]; ++tap, pixel += line.step)
      for (int c = 0; c < 3; ++c) sums[c] += weights[tap] * pixel[c * green];
    for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(sums[c] >> kBits, 0, 255));
  }
}

/// Where the crop of `to` places begins in `from`; negative if it is larger.
std::int64_t crop_begin(std::int64_t from, std::int64_t to) { return from >= to ? (from - to) / 2 : -((to - from + 1) / 2); }

/// The part of `from` that the crop keeps.
Span kept(std::int64_t from, std::int64_t to) {
  const std::int64_t begin = crop_begin(from, to);
  return {std::max<std::int64_t>(begin, 0), std::min(begin + to, from)};
}

}  // namespace

ImageProcessor::ImageProcessor(std::span<const std::uint8_t> preprocessor_config, std::string_view architecture) {
  const FloatEnvironment environment;
  const Json json = parse_python_json(kFile, preprocessor_config, kMaxConfig);
  const ConfigReader config(kFile, json);
  if (json.object() == nullptr) config.refuse(ErrorCode::format, "the file", {"an object"}, {json.kind()});
  const Defaults& defaults = defaults_of(config, architecture);
  config.only_false("do_pad");

  filter_ = static_cast<int>(config.whole("resample", std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), defaults.filter));
  if (filter_ != 2 && filter_ != 3) config.refuse(ErrorCode::unsupported, "resample", {"2 (bilinear) or 3 (bicubic)"}, {filter_});
  if (config.flag("do_resize", true)) {
    const Json* const size = config.find("size");
    const bool keeps_aspect = defaults.height == 0;
    if (size == nullptr) {
      if (keeps_aspect)
        shortest_ = defaults.width;
      else
        size_ = {defaults.height, defaults.width};
    } else if (size->object() != nullptr) {
      const ConfigReader sides = config.object("size");
      if (!sides.has("shortest_edge")) {
        size_ = {side(sides, "height"), side(sides, "width")};
      } else {
        if (sides.has("longest_edge"))
          sides.refuse(ErrorCode::unsupported, "longest_edge", {"no such limit"}, {words_of(*sides.find("longest_edge"))});
        shortest_ = side(sides, "shortest_edge");
      }
    } else if (keeps_aspect && size->array() == nullptr) {
      shortest_ = side(config, "size");
    } else {
      std::tie(size_.height, size_.width) = image_sides(config, "size", 0);
    }
  }
  if (config.flag("do_center_crop", defaults.crops)) {
    const Json* const crop = config.find("crop_size");
    if (crop != nullptr && crop->object() != nullptr) {
      const ConfigReader sides = config.object("crop_size");
      crop_ = {side(sides, "height"), side(sides, "width")};
    } else {
      std::tie(crop_.height, crop_.width) = image_sides(config, "crop_size", 224);
    }
  }
  const double factor = config.flag("do_rescale", true) ? config.positive("rescale_factor", 1.0 / 255) : 1;
  std::array<double, 3> mean{0, 0, 0}, std{1, 1, 1};
  if (config.flag("do_normalize", true)) {
    mean = channels_of(config, "image_mean", defaults.mean, false);
    std = channels_of(config, "image_std", defaults.std, true);
  }
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t level = 0; level < 256; ++level)
      values_[c][level] = static_cast<float>((static_cast<double>(level) * factor - mean[c]) / std[c]);
}

ImageProcessor::Size ImageProcessor::resized(const ImageView& image) const {
  const auto& [data, rows, columns, channels] = image;
  if (shortest_ > 0) return columns <= rows ? Size{shortest_ * rows / columns, shortest_} : Size{shortest_, shortest_ * columns / rows};
  return size_.height > 0 ? size_ : Size{rows, columns};
}

Shape ImageProcessor::check(std::string_view op, const ImageView& image, std::int64_t results) const {
  const auto [height, width] = resized(image);
  const Size crop = cropped(image);
  const Span rows = kept(height, crop.height), columns = kept(width, crop.width);
  check_memory(op, [&] {
    counted(Shape{results, 3, crop.height, crop.width}, "the result");
    // Bytes of both steps, and weights.
    counted(Shape{1 + 3 * (image.height + rows.size()) * columns.size() / 4}, "the resized image");
    for (const auto& [from, to, span] : {std::tuple(image.width, width, columns), std::tuple(image.height, height, rows)})
      counted(Shape{2 * (span.size() + 1) * static_cast<std::int64_t>(Taps::most_of(filter_, from, to) + 2)}, "the resized image");
  });
  return {3, crop.height, crop.width};
}

ImageCrop ImageProcessor::crop(const ImageView& image) const {
  const FloatEnvironment environment;
  const auto [height, width] = resized(image);
  const Size kept_size = cropped(image);
  const double down = static_cast<double>(image.height) / static_cast<double>(height);
  const double across = static_cast<double>(image.width) / static_cast<double>(width);
  return {static_cast<double>(crop_begin(width, kept_size.width)) * across, static_cast<double>(crop_begin(height, kept_size.height)) * down,
          static_cast<double>(kept_size.width) * across, static_cast<double>(kept_size.height) * down};
}

void ImageProcessor::run(const ImageView& image, float* pixel_values) const {
  const FloatEnvironment environment;
  const auto [height, width] = resized(image);
  const Size crop = cropped(image);
  const Span rows = kept(height, crop.height), columns = kept(width, crop.width);
  const std::int64_t line = 3 * columns.size();
  // Across, then down, with bytes between them; only what the crop keeps.
  std::vector<std::uint8_t> wide(static_cast<std::size_t>(image.height * line)), bytes(static_cast<std::size_t>(rows.size() * line));
  const Taps across(filter_, image.width, width, columns), down(filter_, image.height, height, rows);
  for (std::int64_t row = 0; row < image.height; ++row) {
    Interruption::poll();
    resize_line(across, image.channels, {image.data + row * image.width * image.channels, image.channels, wide.data() + row * line, 3});
  }
  for (std::int64_t column = 0; column < columns.size(); ++column) {
    Interruption::poll();
    resize_line(down, 3, {wide.data() + 3 * column, line, bytes.data() + 3 * column, line});
  }

  const std::int64_t top = crop_begin(height, crop.height), left = crop_begin(width, crop.width);
  for (std::int64_t c = 0; c < 3; ++c) {
    const std::array<float, 256>& values = values_[static_cast<std::size_t>(c)];
    float* const plane = pixel_values + c * crop.height * crop.width;
    std::fill_n(plane, crop.height * crop.width, values[0]);
    const std::uint8_t* byte = bytes.data() + c;
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t column = columns.begin; column < columns.end; ++column, byte += 3)
        plane[(row - top) * crop.width + column - left] = values[*byte];
  }
}

}  // namespace attn::detail
