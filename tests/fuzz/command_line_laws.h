// What any words do on the command line, up to where a job would begin.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/line/arguments.h"
#include "reference/core/schedule/schedule.h"
#include "tests/fuzz/laws.h"

namespace ringlab::fuzz {

/// A command with the options that run, verify and bench read: choices, numbers, lists, masks,
/// schedules, files.
inline cli::Command planned_command() {
  cli::Command command{"plan", "reads its options"};
  command.operands = "[SUBJECT…]";
  command.max_operands = 4;
  command.options = cli::option_specs({OptionGroup::problem, OptionGroup::run});
  command.options.push_back({"html", "FILE", "a file"});
  command.options.push_back({"check", "", "a switch"});
  return command;
}

struct PlannedRun {
  RunOptions options;
  Problem problem;
};

/// Reads all of it, and does no work: tensors of --random are left to be made row by row.
inline PlannedRun plan(cli::Arguments& arguments) {
  arguments.refuse_shared_files();
  PlannedRun planned;
  planned.options = cli::take_run_options(arguments, {});
  arguments.take_text("html");
  arguments.take_switch("check");
  planned.problem = cli::load_input(arguments, {.by_rows = true}).problem;
  arguments.reject_unused();
  return planned;
}

using Words = std::vector<std::string>;

/// One word a line. What files lie on this machine is no input of a fuzzer: no word is a path.
inline Words words_of(const Bytes& bytes) {
  Words words(1);
  for (const char letter : text_of_bytes(bytes)) {
    if (letter == '\n') {
      words.emplace_back();
    } else if (letter != '\0' && letter != '/') {
      words.back() += letter;
    }
  }
  return words;
}

inline void refuse_files_that_exist(const cli::Arguments& arguments) {
  for (const char* name : {"text", "input"}) {
    std::error_code unreadable;  // a name that is too long, for one
    if (!std::filesystem::exists(arguments.text(name), unreadable)) continue;
    throw_input_error({name, "no file", "one", ""});
  }
}

/// Whether the words are a run; else they are wrong, or name files that are not there.
inline bool planned(const Words& words, PlannedRun& result) {
  static const cli::Command command = planned_command();
  return accepts(
      [&] {
        cli::Arguments arguments(command, words);
        if (arguments.help_wanted()) throw_usage_error({"--help", "a run", "a question", ""});
        refuse_files_that_exist(arguments);
        result = plan(arguments);
      },
      [](ErrorKind kind) { return kind == ErrorKind::usage || kind == ErrorKind::input; });
}

inline void require_in_range(const PlannedRun& run) {
  const RunOptions& options = run.options;
  check_limits(options);
  require(options.ranks <= 4096 && options.slots <= 4096 && options.threads <= 4096);
  require(options.tile_queries <= 1024 && options.tile_keys <= 1024 && options.timeout_s <= 1e9);
  const ScheduleSpec spec = parse_schedule(schedule_name(schedule_spec(options)));
  require(spec.kind == options.schedule && spec.node_ranks == options.node_ranks);
  check_problem(run.problem);
  const std::string mask = run.problem.mask.text();
  require(run.problem.mask.has_bits() || parse_mask(mask).text() == mask);
}

/// Refused, or a run within its limits to which not one word can be added twice, or added that is
/// unknown.
inline bool command_line_laws(const Bytes& bytes) {
  const Words words = words_of(bytes);
  PlannedRun run, ignored;
  if (!planned(words, run)) return false;
  require_in_range(run);
  const auto more = [&words](const std::string& word) {
    Words longer = words;
    longer.insert(longer.begin(), word);
    return longer;
  };
  require(!planned(more("--no-such-option"), ignored));
  for (const std::string& word : words) {
    if (word == "--") break;  // operands from here on
    const bool is_given = word.starts_with("--") && word.find('=') != std::string::npos;
    if (is_given) require(!planned(more(word), ignored));
  }
  return true;
}

}  // namespace ringlab::fuzz
