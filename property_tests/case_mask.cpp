#include "property_tests/case_mask.h"

#include <charconv>
#include <utility>

#include "property_tests/generators/draws.h"
#include "reference/core/error.h"
#include "reference/core/mask_text.h"

namespace ringlab::verify {
namespace {

constexpr std::string_view kBits = "bits:";

BitMask draw(const DrawnBits& drawn, const Shape& shape) {
  std::vector<std::uint8_t> bits;
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      bits.push_back(Draws(drawn.seed, {i, j}).chance(60) ? 1 : 0);
    }
  }
  return {shape.q_tokens, shape.kv_tokens, std::move(bits),
          kBits.data() + std::to_string(drawn.seed)};
}

DrawnBits parse_bits(const std::string& path) {
  DrawnBits drawn;
  const char* end = path.data() + path.size();
  const char* begin = path.starts_with(kBits) ? path.data() + kBits.size() : end;
  const auto [stop, error] = std::from_chars(begin, end, drawn.seed);
  if (error != std::errc{} || stop != end) {
    throw_usage_error({.where = "mask of a case",
                       .expected = "bits:SEED (a case cannot read a mask from a file)",
                       .actual = "\"" + path + "\""});
  }
  return drawn;
}

/// Writes "bits:" as "file:bits:", for parse_mask() reads matrices of bits from files only.
std::string as_files(std::string_view text) {
  std::string files;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    files += (begin == 0 ? "" : "+");
    files += (word.starts_with(kBits) ? "file:" : "") + std::string(word);
    begin = end + 1;
  }
  return files;
}

template <class Term>
CaseTerm to_case(const Term& term) {
  return term;
}
CaseTerm to_case(const BitMask& bits) { return parse_bits(bits.source); }

template <class Term>
MaskTerm from_case(const Term& term, const Shape&) {
  return term;
}
MaskTerm from_case(const DrawnBits& drawn, const Shape& shape) { return draw(drawn, shape); }

/// Prints a term of a mask; drawn bits as "bits:SEED".
template <class Term>
std::string text_of(const Term& term) {
  return Mask({term}).text();
}
std::string text_of(const DrawnBits& drawn) { return kBits.data() + std::to_string(drawn.seed); }

}  // namespace

CaseMask::CaseMask(const std::string& text) {
  const auto no_bits_yet = [](const std::string& path) {
    parse_bits(path);
    return BitMask{};
  };
  const Mask mask = parse_mask(as_files(text), no_bits_yet);
  for (const MaskTerm& term : mask.terms()) {
    terms_.push_back(std::visit([](const auto& known) { return to_case(known); }, term));
  }
}

bool CaseMask::has_bits() const {
  return std::any_of(terms_.begin(), terms_.end(), [](const CaseTerm& term) {
    return std::visit([](const auto& known) { return !known.kIsInterval; }, term);
  });
}

std::string CaseMask::text() const {
  std::string text;
  for (const CaseTerm& term : terms_) {
    if (!text.empty()) text += '+';
    text += std::visit([](const auto& known) { return text_of(known); }, term);
  }
  return text.empty() ? "full" : text;
}

std::string_view word_of(const CaseTerm& term) {
  return std::visit([](const auto& known) { return known.kWord; }, term);
}

Mask make_mask(const CaseMask& mask, const Shape& shape) {
  std::vector<MaskTerm> terms;
  for (const CaseTerm& term : mask.terms()) {
    terms.push_back(std::visit([&](const auto& known) { return from_case(known, shape); }, term));
  }
  return Mask(std::move(terms));
}

}  // namespace ringlab::verify
