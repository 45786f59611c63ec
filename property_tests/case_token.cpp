// Cases as one word, and as a sentence.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "property_tests/case.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

constexpr std::int64_t kMostTokens = 1 << 20;
constexpr std::int64_t kMostHeads = 1 << 20;
constexpr std::int64_t kMostElements = 1 << 26;
constexpr std::int64_t kMostPairs = 1 << 26;  // laws hold the mask as a matrix of bytes

std::string with_letters(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

std::string schedule_text(const Case& c) {
  return schedule_name({.kind = c.schedule, .node_ranks = c.node_ranks});
}

/// Takes the fields of a token one by one; every mistake names the field.
class TokenFields {
 public:
  explicit TokenFields(const std::string& token) : token_(token) {
    for (std::size_t begin = 0; begin <= token.size();) {
      const std::size_t end = std::min(token.find('.', begin), token.size());
      fields_.push_back(token.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  std::string word(const char* name) {
    if (next_ >= fields_.size()) fail(name, "a value", "the end of the token");
    return fields_[next_++];
  }

  bool next_begins_with(std::string_view text) const {
    return next_ < fields_.size() && fields_[next_].starts_with(text);
  }

  std::uint64_t number(const char* name, char letter, std::uint64_t least, std::uint64_t most) {
    const std::string text = word(name);
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const bool has_letter = !text.empty() && text.front() == letter;
    const auto [stop, error] = std::from_chars(text.data() + (has_letter ? 1 : 0), end, value);
    if (!has_letter || error != std::errc{} || stop != end || value < least || value > most) {
      fail(name, fmt::format("{} and a number from {} to {}", letter, least, most), text);
    }
    return value;
  }

  std::int64_t extent(const char* name, char letter, std::int64_t least, std::int64_t most) {
    return static_cast<std::int64_t>(
        number(name, letter, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
  }

  /// Reads a word that is `no` or `yes`; true for `yes`.
  bool choice(const char* name, std::string_view no, std::string_view yes) {
    const std::string text = word(name);
    if (text != no && text != yes) fail(name, fmt::format("{} or {}", no, yes), text);
    return text == yes;
  }

  void finish() const {
    if (next_ != fields_.size()) fail("end", "no more fields", fields_[next_]);
  }

  [[noreturn]] void fail(const std::string& name, std::string expected,
                         const std::string& actual) const {
    throw_usage_error({.where = "replay token, field " + name,
                       .expected = std::move(expected),
                       .actual = "\"" + actual + "\"",
                       .hint = "The whole token was \"" + token_ + "\""});
  }

 private:
  std::string token_;
  std::vector<std::string> fields_;
  std::size_t next_ = 0;
};

Family read_family(TokenFields& fields) {
  const std::string name = fields.word("family");
  if (const auto family = kind_named<Family, family_name>(name)) return *family;
  fields.fail("family", "a family of values, such as normal or peaked", name);
}

ScaleKind read_scale(TokenFields& fields) {
  const std::string name = fields.word("scale");
  if (const auto scale = kind_named<ScaleKind, scale_name>(name)) return *scale;
  fields.fail("scale", "rsqrt, unit, negative or zero", name);
}

/// The scale in words: "-1/sqrt(64)".
std::string scale_text(const Case& c) {
  switch (c.scale) {
    case ScaleKind::rsqrt:
      return fmt::format("1/sqrt({})", c.shape.head_dim);
    case ScaleKind::unit:
      return "1";
    case ScaleKind::negative:
      return fmt::format("-1/sqrt({})", c.shape.head_dim);
    case ScaleKind::zero:
      return "0";
  }
  return "";
}

template <class Parse>
auto read_named(TokenFields& fields, const char* name, Parse parse) {
  const std::string text = fields.word(name);
  try {
    return parse(text);
  } catch (const Error& error) {
    fields.fail(name, error.parts().expected, text);
  }
}

constexpr std::string_view kWith = "with:";

/// The modifiers in a token, "with:cap8,5-alibi", or empty; without points, which part its fields.
std::string modifiers_word(const CaseModifiers& modifiers) {
  std::vector<std::string> words;
  for (const ModifierKind kind : kModifierKinds) {
    const double level = modifiers.level(kind);
    if (level == 0) continue;
    const ModifierWords known = words_of(kind);
    words.emplace_back(known.token);
    if (known.most > 1) words.back() += with_letters(fmt::format("{}", level), '.', ',');
  }
  return words.empty() ? "" : fmt::format("{}{}", kWith, fmt::join(words, "-"));
}

/// The level that `word` asks for; 0 where it is not about this kind, or out of range.
double level_in(std::string_view word, const ModifierWords& known) {
  if (!word.starts_with(known.token)) return 0;
  if (known.most == 1) return word == known.token ? 1 : 0;
  const std::string number = with_letters(std::string(word.substr(known.token.size())), ',', '.');
  double level = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, level);
  const bool whole = error == std::errc{} && stop == end && std::fmod(level, known.step) == 0;
  return whole && level > 0 && level <= known.most ? level : 0;
}

/// The known modifiers, for messages: "cap0,25 … cap1024, alibi, …".
std::string known_modifiers() {
  std::vector<std::string> words;
  for (const ModifierKind kind : kModifierKinds) {
    const ModifierWords known = words_of(kind);
    words.emplace_back(known.token);
    if (known.most == 1) continue;
    const std::string least = with_letters(fmt::format("{}", known.step), '.', ',');
    words.back() += fmt::format("{} … {}{}", least, known.token, known.most);
  }
  return fmt::format("{}, joined by -", fmt::join(words, ", "));
}

CaseModifiers read_modifiers(TokenFields& fields) {
  CaseModifiers modifiers;
  if (!fields.next_begins_with(kWith)) return modifiers;
  const std::string text = fields.word("with");
  for (std::size_t begin = kWith.size(); begin <= text.size();) {
    const std::size_t end = std::min(text.find('-', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    for (const ModifierKind kind : kModifierKinds) {
      const double level = level_in(word, words_of(kind));
      if (level > 0) modifiers.set(kind, level);
    }
    begin = end + 1;
  }
  if (modifiers_word(modifiers) != text) fields.fail("with", known_modifiers(), text);
  return modifiers;
}

void check_pairs(const TokenFields& fields, const Case& c) {
  const std::int64_t pairs = c.shape.q_tokens * c.shape.kv_tokens;
  if (pairs > kMostPairs) {
    fields.fail("k", "at most 2^26 pairs of a query and a key", std::to_string(c.shape.kv_tokens));
  }
  const std::int64_t terms = std::ranges::count_if(
      c.mask.terms(), [](const auto& term) { return std::holds_alternative<DrawnBits>(term); });
  if (terms > 0 && pairs > kMostDrawnPairs / terms) {
    fields.fail("mask", "bit matrices of at most 2^20 pairs together", c.mask.text());
  }
}

/// Refuses a case that would not fit in memory, and fields that contradict each other.
void check_token(const TokenFields& fields, const Case& c) {
  const Shape& s = c.shape;
  if (s.q_heads % s.kv_heads != 0) {
    fields.fail("h", fmt::format("a multiple of the {} K/V heads", s.kv_heads),
                std::to_string(s.q_heads));
  }
  const std::int64_t tokens = std::max(s.q_tokens, s.kv_tokens);
  const std::int64_t channels = std::max(s.head_dim, s.v_dim);
  std::int64_t size = s.batch * s.q_heads;
  const bool has_too_many_heads = size > kMostElements;  // where there are no tokens, too
  if (has_too_many_heads || __builtin_mul_overflow(size, tokens * channels, &size) ||
      size > kMostElements) {
    fields.fail("q", "tensors of at most 2^26 elements", std::to_string(tokens));
  }
  check_pairs(fields, c);
  try {
    make_problem(c);
  } catch (const Error& error) {
    fields.fail("mask", error.parts().expected, c.mask.text());
  }
}

}  // namespace

std::string to_token(const Case& c) {
  const Shape& s = c.shape;
  return fmt::format(
      "b{}.h{}.g{}.q{}.k{}.d{}.v{}.r{}.{}.{}.{}.{}.{}.{}.{}.n{}.x{}.y{}.{}.c{}.{}{}{}{}.s{}",
      s.batch, s.q_heads, s.kv_heads, s.q_tokens, s.kv_tokens, s.head_dim, s.v_dim, c.ranks,
      dtype_info(c.dtype).name, scale_name(c.scale), layout_name(c.layout),
      c.direction == RingDirection::next ? "next" : "previous", family_name(c.family),
      c.transport == TransportKind::threads ? "threads" : "simulated",
      c.rendezvous ? "rendezvous" : "buffered", c.delay_seed, c.tile_queries, c.tile_keys,
      schedule_text(c), c.slots, c.threads == 1 ? "" : fmt::format("t{}.", c.threads),
      with_letters(c.mask.text(), '+', '-'), c.modifiers.any() ? "." : "",
      modifiers_word(c.modifiers), c.seed);
}

Case from_token(const std::string& token) {
  TokenFields fields(token);
  Case c;
  c.shape.batch = fields.extent("b", 'b', 1, kMostHeads);
  c.shape.q_heads = fields.extent("h", 'h', 1, kMostHeads);
  c.shape.kv_heads = fields.extent("g", 'g', 1, kMostHeads);
  c.shape.q_tokens = fields.extent("q", 'q', 0, kMostTokens);
  c.shape.kv_tokens = fields.extent("k", 'k', 0, kMostTokens);
  c.shape.head_dim = fields.extent("d", 'd', 1, 65536);
  c.shape.v_dim = fields.extent("v", 'v', 1, 65536);
  c.ranks = static_cast<int>(fields.extent("r", 'r', 1, 1024));
  c.dtype = read_named(fields, "dtype", [](const std::string& name) { return parse_dtype(name); });
  c.scale = read_scale(fields);
  c.layout =
      read_named(fields, "layout", [](const std::string& name) { return parse_layout(name); });
  c.direction = fields.choice("direction", "next", "previous") ? RingDirection::previous
                                                               : RingDirection::next;
  c.family = read_family(fields);
  c.transport = fields.choice("transport", "threads", "simulated") ? TransportKind::simulated
                                                                   : TransportKind::threads;
  c.rendezvous = fields.choice("sends", "buffered", "rendezvous");
  c.delay_seed = fields.number("n", 'n', 0, UINT64_MAX);
  c.tile_queries = fields.extent("x", 'x', 1, 1024);
  c.tile_keys = fields.extent("y", 'y', 1, 1024);
  const ScheduleSpec schedule =
      read_named(fields, "schedule", [](const std::string& text) { return parse_schedule(text); });
  c.schedule = schedule.kind;
  c.node_ranks = schedule.node_ranks;
  c.slots = static_cast<int>(fields.extent("c", 'c', 1, 1024));
  if (fields.next_begins_with("t")) {
    c.threads = static_cast<int>(fields.extent("t", 't', 2, 1024));
  }
  c.mask = read_named(fields, "mask", [](const std::string& text) {
    return CaseMask(with_letters(text, '-', '+'));
  });
  c.modifiers = read_modifiers(fields);
  c.seed = fields.number("s", 's', 0, UINT64_MAX);
  fields.finish();
  check_token(fields, c);
  return c;
}

std::string describe(const Case& c) {
  const Shape& s = c.shape;
  std::string text =
      c.ranks == 1 ? "1 rank" : fmt::format("{} ranks ({})", c.ranks, layout_name(c.layout));
  text += fmt::format(", {}, {} values, {}, q {}, k {}, v {}, scale {}", c.mask.text(),
                      with_letters(std::string(family_name(c.family)), '_', ' '),
                      dtype_info(c.dtype).name, ringlab::text(s.q()), ringlab::text(s.k()),
                      ringlab::text(s.v()), scale_text(c));
  text += fmt::format(", tiles {}x{}", c.tile_queries, c.tile_keys);
  if (c.transport == TransportKind::simulated) {
    text += fmt::format(", simulated delays {}", c.delay_seed);
  }
  if (c.rendezvous) text += ", rendezvous sends";
  if (c.direction == RingDirection::previous) text += ", ring towards the previous rank";
  if (c.schedule != ScheduleKind::ring) text += ", schedule " + schedule_text(c);
  for (const ModifierKind kind : kModifierKinds) {
    const double level = c.modifiers.level(kind);
    if (level != 0) text += ", " + fmt::format(fmt::runtime(words_of(kind).phrase), level);
  }
  if (c.slots != 2) text += fmt::format(", {} {}", c.slots, c.slots == 1 ? "slot" : "slots");
  if (c.threads != 1) text += fmt::format(", {} threads", c.threads);
  return text + fmt::format(", seed {}", c.seed);
}

}  // namespace ringlab::verify
