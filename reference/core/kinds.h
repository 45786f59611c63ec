// Closed sets of kinds, listed by the one switch that names them: an enumerator without a name does
// not compile (-Werror=switch), and there is no second list to forget.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ringlab {

/// Number of enumerators to which kWord, a constexpr switch without default, gives a word. Past the
/// last one it returns an empty word.
template <class Kind, std::string_view (*kWord)(Kind)>
constexpr std::size_t count_kinds() {
  std::size_t count = 0;
  while (!kWord(static_cast<Kind>(count)).empty()) ++count;
  return count;
}

/// All enumerators of Kind, in their order.
template <class Kind, std::string_view (*kWord)(Kind)>
constexpr auto all_kinds() {
  std::array<Kind, count_kinds<Kind, kWord>()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<Kind>(i);
  return kinds;
}

/// The kind of this word; nothing for other words.
template <class Kind, std::string_view (*kWord)(Kind)>
constexpr std::optional<Kind> kind_named(std::string_view word) {
  for (const Kind kind : all_kinds<Kind, kWord>()) {
    if (kWord(kind) == word) return kind;
  }
  return std::nullopt;
}

/// "one of a, b, c", for messages.
template <class Kind, std::string_view (*kWord)(Kind)>
std::string one_of_kinds() {
  std::string text;
  for (const Kind kind : all_kinds<Kind, kWord>()) {
    text += (text.empty() ? "one of " : ", ") + std::string(kWord(kind));
  }
  return text;
}

}  // namespace ringlab
