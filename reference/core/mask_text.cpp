// The command-line form of masks: reading and printing.
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "reference/core/error.h"
#include "reference/core/mask.h"

namespace ringlab {
namespace {

constexpr std::string_view kGrammar =
    "full, causal, window:L,R, documents:LEN,LEN,…, prefix:N or file:PATH, joined with +";

[[noreturn]] void throw_bad_word(std::string_view word, std::string_view expected) {
  throw_usage_error({.where = "mask",
                     .expected = std::string(expected),
                     .actual = "\"" + std::string(word) + "\""});
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

/// Numbers between commas; nothing when one of them is malformed.
std::optional<std::vector<std::int64_t>> parse_numbers(std::string_view text, bool inf_allowed) {
  std::vector<std::int64_t> numbers;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const bool is_inf = inf_allowed && item == "inf";
    const auto number = is_inf ? std::optional(WindowMask::kUnlimited) : parse_number(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

bool starts_a_term(std::string_view text) {
  for (const std::string_view word : {"full", "causal"}) {
    if (text == word || (text.starts_with(word) && text[word.size()] == '+')) return true;
  }
  for (const std::string_view word : {"window:", "documents:", "prefix:", "file:"}) {
    if (text.starts_with(word)) return true;
  }
  return false;
}

/// Length of the first term: up to the next "+", but a path may hold a "+" of its own.
std::size_t term_length(std::string_view text) {
  const bool is_file = text.starts_with("file:");
  std::size_t plus = text.find('+');
  while (is_file && plus != std::string_view::npos && !starts_a_term(text.substr(plus + 1))) {
    plus = text.find('+', plus + 1);
  }
  return plus;
}

using LoadBits = std::function<BitMask(const std::string& path)>;

BitMask parse_file(std::string_view word, std::string_view path, const LoadBits& load_bits) {
  if (path.empty()) throw_bad_word(word, "file:PATH with a path");
  if (!load_bits) throw_bad_word(word, "a mask that needs no file here");
  BitMask bits = load_bits(std::string(path));
  bits.source = path;
  return bits;
}

MaskTerm parse_term(std::string_view word, const LoadBits& load_bits) {
  const std::size_t colon = word.find(':');
  const std::string_view name = word.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view{} : word.substr(colon + 1);
  if (word == "causal") return CausalMask{};
  if (name == "window") {
    const auto limits = parse_numbers(rest, true);
    if (!limits || limits->size() != 2) {
      throw_bad_word(word, "window:L,R with two numbers >= 0 or inf");
    }
    return WindowMask{(*limits)[0], (*limits)[1]};
  }
  if (name == "documents") {
    auto lengths = parse_numbers(rest, false);
    if (!lengths) throw_bad_word(word, "documents:LEN,LEN,… with numbers >= 0");
    return DocumentsMask{std::move(*lengths)};
  }
  if (name == "prefix") {
    const auto tokens = parse_number(rest);
    if (!tokens) throw_bad_word(word, "prefix:N with a number >= 0");
    return PrefixMask{*tokens};
  }
  if (name == "file" && colon != std::string_view::npos) return parse_file(word, rest, load_bits);
  throw_bad_word(word, kGrammar);
}

std::string limit_text(std::int64_t limit) {
  return limit == WindowMask::kUnlimited ? "inf" : std::to_string(limit);
}

std::string term_text(const CausalMask&) { return "causal"; }
std::string term_text(const WindowMask& window) {
  return "window:" + limit_text(window.left) + "," + limit_text(window.right);
}
std::string term_text(const DocumentsMask& documents) {
  if (documents.lengths.empty()) return "documents:0";
  std::string text;
  for (const std::int64_t length : documents.lengths) text += "," + std::to_string(length);
  return "documents:" + text.substr(1);
}
std::string term_text(const PrefixMask& prefix) {
  return "prefix:" + std::to_string(prefix.tokens);
}
std::string term_text(const BitMask& bits) { return "file:" + bits.source; }

}  // namespace

std::string Mask::text() const {
  std::string text;
  for (const MaskTerm& term : terms_) {
    if (!text.empty()) text += '+';
    text += std::visit([](const auto& known) { return term_text(known); }, term);
  }
  return text.empty() ? "full" : text;
}

Mask parse_mask(std::string_view text, const LoadBits& load_bits) {
  std::vector<MaskTerm> terms;
  std::string_view rest = text;
  for (;;) {
    const std::size_t length = term_length(rest);
    const std::string_view word = rest.substr(0, length);
    if (word != "full") terms.push_back(parse_term(word, load_bits));
    if (length == std::string_view::npos) return Mask(std::move(terms));
    rest.remove_prefix(length + 1);
  }
}

}  // namespace ringlab
