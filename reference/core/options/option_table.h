// Every option of a run, once: its word, what it sets, between which limits, who honours it, and its
// line of help. Command line, JSON, Python and the engine's own checks read the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "reference/core/run.h"

namespace ringlab {

/// The ability that a subject needs for an option to have an effect on its runs.
enum class Feature {
  none,  ///< every subject honours it
  gradients,
  schedules,
  wires,
  checksums,
  slots,
  messages,
  threads,
  tiles,
  traces,
  softcap,
  alibi,
  sinks,
  dropout,
  graphs,
  free_multiprocessors,
  gradient_order,
};

/// Sections of the table, in its order: commands take whole ones.
enum class OptionGroup { problem, results, run, job, devices, checks };

/// A word of a list, which sets an enumerator.
struct ChoiceField {
  std::span<const std::string_view> words;
  std::size_t (*get)(const RunOptions&);
  void (*set)(RunOptions&, std::size_t);
};
/// RunOptions::schedule and node_ranks: "double:4".
struct ScheduleField {};

/// The field of RunOptions that an option sets; monostate: none.
using OptionField =
    std::variant<std::monostate, bool RunOptions::*, int RunOptions::*, std::int64_t RunOptions::*,
                 std::uint64_t RunOptions::*, double RunOptions::*, ChoiceField, ScheduleField>;

/// The name of an option, and its line of help.
struct OptionWords {
  OptionGroup group;
  std::string_view word;   ///< after two dashes: "tile-keys"
  std::string_view value;  ///< what its value is called in the help; empty for a switch
  std::string_view help;
};

/// The field that an option sets, its limits, and when it has an effect.
struct OptionRules {
  std::string_view otherwise = "";  ///< the default, where the field's own does not say it
  std::string_view applies = "";    ///< when it has an effect, where that is not always
  double least = 0, most = 0;       ///< of numbers
  OptionField field = {};
  Feature needs = Feature::none;
  /// True when the option has an effect beside these others; null: always.
  bool (*has_effect)(const RunOptions&) = nullptr;
};

struct RunOption : OptionWords, OptionRules {};

/// All rows of the table.
std::span<const RunOption> run_options();

/// The row of a word, which must have one.
const RunOption& run_option(std::string_view word);

/// The name in JSON and as an argument in Python: "tile_keys"; times end in their unit.
std::string name_of(const RunOption& option);

/// Help, limits and default: "number of ranks, 1 … 4096 (1)".
std::string help_of(const RunOption& option, std::string_view otherwise = "");

/// Usage error for a number that is not within the option's limits.
void check_limit(const RunOption& option, double value);
/// Usage error for the first field that is not within its option's limits.
void check_limits(const RunOptions& options);

/// Sets a choice or a schedule by its word. Usage error for a word that is not in the list.
void set_word(const RunOption& option, const std::string& word, RunOptions& options);
/// The word of a choice or a schedule.
std::string word_of(const RunOption& option, const RunOptions& options);

}  // namespace ringlab
