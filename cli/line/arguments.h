// The words after `ringlab COMMAND`, checked: each option known, given once, whole, and used.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/line/command.h"

namespace ringlab::cli {

/// take_…() mark an option as used; reject_unused() then refuses options that had no effect, so
/// that nothing on a command line is ever ignored.
class Arguments {
 public:
  /// Usage error for an unknown or repeated option, a missing value, too many or few operands.
  Arguments(const Command& command, const std::vector<std::string>& words);

  bool help_wanted() const { return help_wanted_; }
  const std::vector<std::string>& operands() const { return operands_; }
  /// All words, the command's name first.
  const std::vector<std::string>& words() const { return words_; }

  /// True when the option is on the command line; does not count as a use.
  bool given(const std::string& name) const { return values_.count(name) != 0; }
  /// The value of the option, empty when it is not given; does not count as a use either.
  std::string text(const std::string& name) const {
    return given(name) ? values_.at(name) : std::string();
  }
  /// The command line with `value` for the option.
  Arguments with(const std::string& name, const std::string& value) const {
    Arguments other = *this;
    other.values_[name] = value;
    return other;
  }
  /// Names and values of the `options` that are given; no value for a switch.
  std::vector<std::pair<std::string, std::string>> given_options(
      const std::vector<OptionSpec>& options) const;
  bool take_switch(const std::string& name);
  std::optional<std::string> take_text(const std::string& name);
  /// The words between commas of an option's value; none when it is not given.
  std::vector<std::string> take_words(const std::string& name);
  std::int64_t take_integer(const std::string& name, std::int64_t fallback, std::int64_t least,
                            std::int64_t most);
  std::uint64_t take_unsigned(const std::string& name, std::uint64_t fallback);
  double take_real(const std::string& name, double fallback, double least, double most);

  /// The value of the word of `choices` that is given; `fallback` when none is.
  template <class Value>
  Value take_choice(const std::string& name, Value fallback,
                    const std::vector<std::pair<std::string, Value>>& choices);

  /// Replaces "-", the value of an option, by the first line of `input`: other users of a machine
  /// see the words of a command line.
  void read_from(const std::string& name, std::istream& input);

  /// Usage error when an option of type FILE or PATH names the same file as another one, or as
  /// anything else on the command line that is there to be read: one would be written over the other.
  void refuse_shared_files() const;

  /// Usage error naming the first option that was given and had no effect.
  void reject_unused() const;

 private:
  [[noreturn]] void refuse_choice(const std::string& name, const std::string& text,
                                  const std::vector<std::string>& words) const;

  const Command& command_;
  std::map<std::string, std::string> values_;
  std::set<std::string> used_;
  std::vector<std::string> operands_;
  std::vector<std::string> words_;
  bool help_wanted_ = false;
};

/// The options of a command, aligned, as its help shows them.
std::string option_help(const Command& command);

template <class Value>
Value Arguments::take_choice(const std::string& name, Value fallback,
                             const std::vector<std::pair<std::string, Value>>& choices) {
  const std::optional<std::string> text = take_text(name);
  if (!text) return fallback;
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) {
    if (word == *text) return value;
    words.push_back(word);
  }
  refuse_choice(name, *text, words);
}

}  // namespace ringlab::cli
