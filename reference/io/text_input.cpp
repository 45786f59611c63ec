#include "reference/io/text_input.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "reference/core/error.h"
#include "reference/io/input_file.h"
#include "reference/io/rotary.h"

namespace ringlab::io {
namespace {

// Every machine must make the same numbers, so nothing here calls the C library's exp, sin or log:
// plain IEEE operations.

constexpr std::int64_t kModelDim = 64;
constexpr std::size_t kByteValues = 256;

/// Stateless generator: the same (seed, stream, index) gives the same number, in any order.
/// SplitMix64 finalizer (Steele, Lea & Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// A number of mean 0 and variance 1, nearly normal: the sum of four 16-bit uniforms, exact but for
/// one rounding.
double random_number(std::uint64_t seed, std::uint64_t stream, std::int64_t index) {
  const std::uint64_t bits = mix(mix(mix(seed) ^ stream) ^ static_cast<std::uint64_t>(index));
  std::int64_t sum = 0;
  for (int part = 0; part < 4; ++part)
    sum += static_cast<std::int64_t>(bits >> (16 * part) & 0xffff);
  const double centred = static_cast<double>(2 * sum - 4 * 0xffff) / 0x1p17;
  return centred * std::sqrt(3.0);  // sqrt is exact to the last bit by IEEE 754
}

/// (byte value, heads * channels): each byte's projection before its position is known.
struct Projection {
  std::int64_t heads = 0;
  std::int64_t channels = 0;
  std::vector<double> rows;
  std::span<const double> row(unsigned char byte, std::int64_t head) const {
    const std::int64_t width = heads * channels;
    return std::span(rows).subspan(static_cast<std::size_t>(byte * width + head * channels),
                                   static_cast<std::size_t>(channels));
  }
};

enum TextTensor : std::uint64_t { kEmbedding = 1, kQuery, kKey, kValue };

/// (byte value, model dim)
std::vector<double> embedding(std::uint64_t seed) {
  std::vector<double> table;
  for (std::int64_t i = 0; i < std::int64_t{kByteValues} * kModelDim; ++i) {
    table.push_back(random_number(seed, kEmbedding, i));
  }
  return table;
}

/// Random projection of the embedding, (byte value, heads · channels): a byte always projects to
/// the same row, so that equal letters attend to each other.
Projection project(std::uint64_t seed, TextTensor stream, const Extents& shape, double deviation) {
  Projection result{shape.heads, shape.channels, {}};
  const std::int64_t width = shape.heads * shape.channels;
  const std::vector<double> embedded = embedding(seed);
  result.rows.resize(kByteValues * static_cast<std::size_t>(width));
  const double gain = deviation / std::sqrt(static_cast<double>(kModelDim));
  for (std::int64_t m = 0; m < kModelDim; ++m) {
    for (std::int64_t column = 0; column < width; ++column) {
      const double weight = gain * random_number(seed, stream, m * width + column);
      for (std::int64_t byte = 0; byte < std::int64_t{kByteValues}; ++byte) {
        result.rows[static_cast<std::size_t>(byte * width + column)] +=
            weight * embedded[static_cast<std::size_t>(byte * kModelDim + m)];
      }
    }
  }
  return result;
}

/// A row of the projection, turned; rounded to the dtype last.
void write_row(std::span<double> out, std::span<const double> row,
               const std::vector<Rotation>& turns, DType dtype) {
  std::ranges::copy(row, out.begin());
  for (std::size_t pair = 0; pair < turns.size(); ++pair) {
    const double a = row[2 * pair];
    const double b = row[2 * pair + 1];
    out[2 * pair] = a * turns[pair].cosine - b * turns[pair].sine;
    out[2 * pair + 1] = a * turns[pair].sine + b * turns[pair].cosine;
  }
  for (double& value : out) value = round_to(dtype, value);
}

/// (1, heads, tokens, channels), turned by `rotary` unless it is null.
Tensor<double> expand(const Projection& projection, std::string_view text, const Rotary* rotary,
                      DType dtype) {
  const auto tokens = static_cast<std::int64_t>(text.size());
  Tensor<double> result(Extents{1, projection.heads, tokens, projection.channels});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::vector<Rotation> turns = rotary ? rotary->at(t) : std::vector<Rotation>{};
    const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(t)]);
    for (std::int64_t head = 0; head < projection.heads; ++head) {
      const std::span out(&result(0, head, t, 0), static_cast<std::size_t>(projection.channels));
      write_row(out, projection.row(byte, head), turns, dtype);
    }
  }
  return result;
}

void check_positive(const char* option, std::int64_t value) {
  if (value >= 1) return;
  throw_usage_error({.where = option, .expected = "at least 1", .actual = std::to_string(value)});
}

void check_options(const TextOptions& options) {
  check_positive("max tokens", options.max_tokens);
  check_positive("query heads", options.q_heads);
  check_positive("K/V heads", options.kv_heads);
  check_positive("head dim", options.head_dim);
  check_positive("v dim", options.v_dim);
  if (options.q_heads % options.kv_heads == 0) return;
  throw_usage_error(
      {.where = "query heads",
       .expected = "a multiple of the " + std::to_string(options.kv_heads) + " K/V heads",
       .actual = std::to_string(options.q_heads)});
}

Problem make_problem(const TextOptions& options, std::int64_t tokens) {
  Problem problem;
  problem.shape = {.batch = 1,
                   .q_heads = options.q_heads,
                   .kv_heads = options.kv_heads,
                   .q_tokens = tokens,
                   .kv_tokens = tokens,
                   .head_dim = options.head_dim,
                   .v_dim = options.v_dim};
  problem.dtype = options.dtype;
  problem.scale = default_scale(options.head_dim);
  problem.mask = Mask().bind(tokens, tokens);
  return problem;
}

AttentionTensors make_tensors(const TextOptions& o, std::string_view text) {
  // Variance 2 in q and k gives scores of standard deviation 2: attention that is neither uniform
  // nor on one key (about n/55 keys carry it).
  const double deviation = std::sqrt(2.0);
  const Rotary rotary(o.head_dim, static_cast<std::int64_t>(text.size()));
  const auto tensor = [&](TextTensor stream, const Extents& shape, double spread,
                          const Rotary* turn) {
    checked_size({1, shape.heads, static_cast<std::int64_t>(text.size()), shape.channels});
    return expand(project(o.seed, stream, shape, spread), text, turn, o.dtype);
  };
  return {tensor(kQuery, {1, o.q_heads, 0, o.head_dim}, deviation, &rotary),
          tensor(kKey, {1, o.kv_heads, 0, o.head_dim}, deviation, &rotary),
          tensor(kValue, {1, o.kv_heads, 0, o.v_dim}, 1.0, nullptr)};
}

}  // namespace

TextInput text_input_from_bytes(const std::string& text, const TextOptions& options) {
  check_options(options);
  if (text.empty()) {
    throw_input_error({.where = "text", .expected = "at least one byte", .actual = "none"});
  }
  const auto bytes = static_cast<std::int64_t>(text.size());
  const std::int64_t tokens = std::min(bytes, options.max_tokens);
  const std::string_view used = std::string_view(text).substr(0, static_cast<std::size_t>(tokens));
  return {.problem = make_problem(options, tokens),
          .tensors = make_tensors(options, used),
          .file_bytes = bytes,
          .tokens = tokens};
}

TextInput text_input(const std::string& path, const TextOptions& options) {
  check_options(options);
  const InputFile file(path);
  if (file.size() == 0) {
    throw_input_error({.where = printable(path),
                       .expected = "at least one byte of text",
                       .actual = "an empty file"});
  }
  const auto bytes = file.read(std::min(file.size(), options.max_tokens));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TextInput input = text_input_from_bytes(text, options);
  input.file_bytes = file.size();
  return input;
}

}  // namespace ringlab::io
