// The command-line form of masks: reading and printing.
#include "reference/core/mask_text.h"

#include <charconv>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reference/core/error.h"
#include "reference/core/options/near_word.h"

namespace ringlab {
namespace {

std::string_view form_of(const MaskTerm& term) {
  return std::visit([](const auto& known) { return known.kForm; }, term);
}

/// "full, causal, window:L,R, … or file:PATH, joined with +".
std::string grammar() {
  std::string text = "full";
  for (const MaskTerm& kind : mask_kinds()) {
    text += kind.index() + 1 == std::variant_size_v<MaskTerm> ? " or " : ", ";
    text += form_of(kind);
  }
  return text + ", joined with +";
}

[[noreturn]] void throw_bad_word(std::string_view word, std::string_view expected) {
  throw_usage_error({.where = "mask",
                     .expected = std::string(expected),
                     .actual = "\"" + std::string(word) + "\""});
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // All of the text is the number, and it has no sign.
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
    // A limit larger than any sequence.
    const auto number = is_inf ? std::optional(WindowMask::kUnlimited) : parse_number(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

/// True when `text` begins with the word of `form`, and with its colon where it has one.
bool begins_with(std::string_view text, std::string_view form) {
  const std::size_t colon = form.find(':');
  if (colon != std::string_view::npos) return text.starts_with(form.substr(0, colon + 1));
  return text.starts_with(form) && (text.size() == form.size() || text[form.size()] == '+');
}

// True for the words of all kinds, and for "full", which is no kind: it adds no term.
bool starts_a_term(std::string_view text) {
  bool starts = begins_with(text, "full");
  for (const MaskTerm& kind : mask_kinds()) starts |= begins_with(text, form_of(kind));
  return starts;
}

/// Length of the first term: up to the next "+", but a path may hold a "+" of its own.
std::size_t term_length(std::string_view text) {
  const bool is_file = text.starts_with("file:");
  std::size_t plus = text.find('+');
  // A "+" in a path counts only when what follows it reads like a term.
  while (is_file && plus != std::string_view::npos && !starts_a_term(text.substr(plus + 1))) {
    plus = text.find('+', plus + 1);
  }
  return plus;
}

/// One term: its text, and what stands behind the colon.
struct Word {
  std::string_view text;
  std::optional<std::string_view> rest;
  const LoadBits* load_bits;
};

// Reading and printing, an overload each per kind.

void read(CausalMask&, const Word& word) {
  if (word.rest) throw_bad_word(word.text, grammar());
}
void read(WindowMask& window, const Word& word) {
  const auto limits = parse_numbers(word.rest.value_or(""), true);
  if (!limits || limits->size() != 2) {
    throw_bad_word(word.text, "window:L,R with two numbers >= 0 or inf");
  }
  window = {(*limits)[0], (*limits)[1]};
}
void read(DocumentsMask& documents, const Word& word) {
  auto lengths = parse_numbers(word.rest.value_or(""), false);
  if (!lengths) throw_bad_word(word.text, "documents:LEN,LEN,… with numbers >= 0");
  documents.lengths = std::move(*lengths);
}
void read(PrefixMask& prefix, const Word& word) {
  const auto tokens = parse_number(word.rest.value_or(""));
  if (!tokens) throw_bad_word(word.text, "prefix:N with a number >= 0");
  prefix.tokens = *tokens;
}
void read(BitMask& bits, const Word& word) {
  if (!word.rest) throw_bad_word(word.text, grammar());
  if (word.rest->empty()) throw_bad_word(word.text, "file:PATH with a path");
  if (!*word.load_bits) throw_bad_word(word.text, "a mask that needs no file here");
  bits = (*word.load_bits)(std::string(*word.rest));
  bits.source = *word.rest;
}

MaskTerm parse_term(std::string_view text, const LoadBits& load_bits) {
  const std::size_t colon = text.find(':');
  Word word{.text = text, .rest = std::nullopt, .load_bits = &load_bits};
  if (colon != std::string_view::npos) word.rest = text.substr(colon + 1);
  // A term of its kind with defaults, which read() fills in.
  for (MaskTerm& term : mask_kinds()) {
    if (text.substr(0, colon) != mask_word(term)) continue;
    std::visit([&](auto& known) { read(known, word); }, term);
    return std::move(term);
  }
  std::vector<std::string> words = {"full"};
  for (const MaskTerm& kind : mask_kinds()) words.emplace_back(mask_word(kind));
  throw_usage_error({.where = "mask",
                     .expected = grammar(),
                     .actual = "\"" + std::string(text) + "\"",
                     .hint = did_you_mean(text.substr(0, colon), words)});
}

std::string limit_text(std::int64_t limit) {
  return limit == WindowMask::kUnlimited ? "inf" : std::to_string(limit);
}

std::string term_text(const CausalMask&) { return "causal"; }
std::string term_text(const WindowMask& window) {
  return "window:" + limit_text(window.left) + "," + limit_text(window.right);
}
// No document at all, written as one without tokens: an empty list cannot be read.
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

// A term of each kind, in the order of the variant, which is what index() counts.
std::vector<MaskTerm> mask_kinds() {
  return []<class... Term>(std::type_identity<std::variant<Term...>>) {
    return std::vector<MaskTerm>{Term{}...};
  }(std::type_identity<MaskTerm>{});
}

std::string_view mask_word(const MaskTerm& term) {
  return std::visit([](const auto& known) { return known.kWord; }, term);
}

std::string Mask::text() const {
  std::string text;
  for (const MaskTerm& term : terms_) {
    if (!text.empty()) text += '+';
    text += std::visit([](const auto& known) { return term_text(known); }, term);
  }
  return text.empty() ? "full" : text;
}

Mask parse_mask(std::string_view text) { return parse_mask(text, LoadBits{}); }

Mask parse_mask(std::string_view text, const LoadBits& load_bits) {
  std::vector<MaskTerm> terms;
  std::string_view rest = text;
  for (;;) {
    const std::size_t length = term_length(rest);
    const std::string_view word = rest.substr(0, length);
    // "full" adds nothing to an intersection.
    if (word != "full") terms.push_back(parse_term(word, load_bits));
    if (length == std::string_view::npos) return Mask(std::move(terms));
    rest.remove_prefix(length + 1);
  }
}

}  // namespace ringlab
