// A case made into a problem and options.
#include "property_tests/case.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <numeric>
#include <vector>

#include "property_tests/generators/draws.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

constexpr std::array<std::string_view, kFamilies> kFamilyNames = {
    "normal",    "uniform",      "small_ints",   "peaked",    "late_maximum", "early_maximum",
    "huge_gaps", "common_shift", "signed_zeros", "subnormal", "constant_v"};

/// Three pairs in five are visible. A pair's bit depends on the seed and the pair only, so that it
/// stays when the shape shrinks.
BitMask random_bits(std::uint64_t seed, const Shape& shape) {
  auto bits = std::make_shared<std::vector<std::uint8_t>>();
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      bits->push_back(Draws(seed, {i, j}).chance(60) ? 1 : 0);
    }
  }
  return {shape.q_tokens, shape.kv_tokens, std::move(bits), "bits:" + std::to_string(seed)};
}

std::uint64_t parse_bits_seed(const std::string& path) {
  constexpr std::string_view kWord = "bits:";
  std::uint64_t seed = 0;
  const char* end = path.data() + path.size();
  const char* begin = path.starts_with(kWord) ? path.data() + kWord.size() : end;
  const auto [stop, error] = std::from_chars(begin, end, seed);
  if (error != std::errc{} || stop != end) {
    throw_usage_error({.where = "mask of a case",
                       .expected = "bits:SEED (a case cannot read a mask from a file)",
                       .actual = "\"" + path + "\"",
                       .hint = ""});
  }
  return seed;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

/// Document lengths cut off, or the last one stretched, so that they sum to `tokens`.
std::string fitted_documents(const DocumentsMask& documents, std::int64_t tokens) {
  std::vector<std::int64_t> lengths;
  std::int64_t left = tokens;
  for (const std::int64_t length : documents.lengths) {
    lengths.push_back(std::min(length, left));
    left -= lengths.back();
  }
  if (lengths.empty()) lengths.push_back(0);
  lengths.back() += left;
  return Mask({DocumentsMask{lengths}}).text();
}

std::string fitted_mask(const std::string& mask, const Shape& shape) {
  std::string text;
  for (const std::string& word : split(mask, '+')) {
    std::string term = word;
    if (word.starts_with("documents:")) {
      const Mask parsed = parse_mask(word);
      term = fitted_documents(std::get<DocumentsMask>(parsed.terms().front()), shape.kv_tokens);
    }
    text += (text.empty() ? "" : "+") + term;
  }
  return text;
}

Modifiers make_modifiers(const Case& c) {
  constexpr std::int64_t kSinkStream = -2;  // tensors are drawn from others
  Modifiers modifiers{.softcap = static_cast<double>(c.modifiers.softcap),
                      .dropout = c.modifiers.dropout_percent / 100.0};
  if (c.modifiers.alibi) modifiers.alibi_slopes = default_alibi_slopes(c.shape.q_heads);
  for (std::int64_t h = 0; c.modifiers.sinks && h < c.shape.q_heads; ++h) {
    modifiers.sinks.push_back(3 * Draws(c.seed, {kSinkStream, h}).symmetric());
  }
  if (modifiers.dropout > 0) modifiers.dropout_seed = c.seed;
  return modifiers;
}

}  // namespace

std::string_view family_name(Family family) {
  return kFamilyNames[static_cast<std::size_t>(family)];
}

Case fitted(Case c) {
  Shape& s = c.shape;
  for (std::int64_t* extent :
       {&s.batch, &s.kv_heads, &s.head_dim, &s.v_dim, &c.tile_queries, &c.tile_keys}) {
    *extent = std::max<std::int64_t>(1, *extent);
  }
  s.q_tokens = std::max<std::int64_t>(0, s.q_tokens);
  s.kv_tokens = std::max<std::int64_t>(0, s.kv_tokens);
  s.q_heads = std::max(s.q_heads / s.kv_heads, std::int64_t{1}) * s.kv_heads;
  c.ranks = std::max(1, c.ranks);
  c.slots = std::max(1, c.slots);
  c.mask = fitted_mask(c.mask, s);
  c.modifiers.softcap = std::clamp(c.modifiers.softcap, 0, 64);
  c.modifiers.dropout_percent = std::clamp(c.modifiers.dropout_percent, 0, 90);
  return c;
}

Mask parse_case_mask(const std::string& text, const Shape& shape) {
  std::string command_line;
  for (const std::string& word : split(text, '+')) {
    if (!command_line.empty()) command_line += '+';
    command_line += (word.starts_with("bits:") ? "file:" : "") + word;
  }
  return parse_mask(command_line, [&](const std::string& path) {
    return random_bits(parse_bits_seed(path), shape);
  });
}

Problem make_problem(const Case& c) {
  return {.shape = c.shape,
          .dtype = c.dtype,
          .scale = c.unit_scale ? 1.0 : default_scale(c.shape.head_dim),
          .mask = parse_case_mask(c.mask, c.shape).bind(c.shape.q_tokens, c.shape.kv_tokens),
          .modifiers = make_modifiers(c)};
}

RunOptions make_options(const Case& c) {
  RunOptions options;
  options.ranks = c.ranks;
  options.layout = c.layout;
  options.direction = c.direction;
  options.transport = c.transport;
  options.delay_seed = c.delay_seed;
  options.rendezvous = c.rendezvous;
  options.timeout_s = 10.0;  // a case takes milliseconds; a hang should not take the whole run
  options.tile_queries = c.tile_queries;
  options.tile_keys = c.tile_keys;
  options.thread_order_seed = c.seed;
  const ScheduleSpec schedule = parse_schedule(c.schedule);
  options.schedule = schedule.kind;
  options.node_ranks = schedule.node_ranks;
  options.slots = c.slots;
  return options;
}

bool has_an_empty_row(const Problem& problem) {
  for (std::int64_t i = 0; i < problem.shape.q_tokens; ++i) {
    const KeyInterval keys = problem.mask.interval(i);
    std::int64_t visible = problem.mask.has_bits() ? 0 : keys.size();
    for (std::int64_t j = keys.begin; j < keys.end && visible == 0; ++j) {
      visible += problem.mask.allows(i, j);
    }
    if (visible == 0) return true;
  }
  return false;
}

}  // namespace ringlab::verify
