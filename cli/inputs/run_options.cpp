#include "cli/inputs/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

/// Reads one option into its field, whose value so far is the default.
struct OptionReader {
  Arguments& arguments;
  const RunOption& option;
  RunOptions& options;
  std::string word{option.word};

  void operator()(std::monostate) const {}
  void operator()(ScheduleField) const {
    if (const auto text = arguments.take_text(word)) set_word(option, *text, options);
  }
  void operator()(const ChoiceField& field) const {
    std::vector<std::pair<std::string, std::size_t>> choices;
    for (const std::string_view choice : field.words) choices.emplace_back(choice, choices.size());
    field.set(options, arguments.take_choice(word, field.get(options), choices));
  }
  void operator()(bool RunOptions::*field) const {
    options.*field =
        option.value.empty()
            ? arguments.take_switch(word)
            : arguments.take_choice<bool>(word, options.*field, {{"on", true}, {"off", false}});
  }
  void operator()(std::uint64_t RunOptions::*field) const {
    options.*field = arguments.take_unsigned(word, options.*field);
  }
  void operator()(double RunOptions::*field) const {
    options.*field = take_number(arguments, word, options.*field);
  }
  template <class Whole>
  void operator()(Whole RunOptions::*field) const {
    options.*field = static_cast<Whole>(take_whole(arguments, word, options.*field));
  }
};

Json value_of(const RunOption& option, const RunOptions& options) {
  return std::visit(
      [&]<class Field>(const Field& field) {
        if constexpr (std::is_member_object_pointer_v<Field>) {
          return Json(options.*field);
        } else {
          return Json(word_of(option, options));
        }
      },
      option.field);
}

bool sets_a_field(const RunOption& option) {
  return !std::holds_alternative<std::monostate>(option.field);
}

/// Ranks in this process share its cores.
int default_threads(const RunOptions& options, const RunDefaults& defaults) {
  if (!defaults.many_threads || options.transport != TransportKind::threads) return 1;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.ranks);
}

void check_nodes(const RunOptions& options) {
  if (options.node_ranks <= options.ranks) return;
  throw_usage_error({"--schedule",
                     fmt::format("double:W with W of at most {}, the ranks", options.ranks),
                     schedule_name(schedule_spec(options)), "With W = P it is one ring."});
}

}  // namespace

OptionSpec option_spec(std::string_view word, std::string_view otherwise) {
  const RunOption& option = run_option(word);
  return {std::string(word), std::string(option.value), help_of(option, otherwise),
          std::string(option.applies)};
}

bool is_in(const std::vector<OptionGroup>& groups, const RunOption& option) {
  return groups.empty() || std::ranges::count(groups, option.group) > 0;
}

std::vector<OptionSpec> option_specs(const std::vector<OptionGroup>& groups) {
  std::vector<OptionSpec> specs;
  for (const RunOption& option : run_options()) {
    if (is_in(groups, option)) specs.push_back(option_spec(option.word));
  }
  return specs;
}

std::int64_t take_whole(Arguments& arguments, std::string_view word, std::int64_t fallback) {
  const RunOption& option = run_option(word);
  return arguments.take_integer(std::string(word), fallback,
                                static_cast<std::int64_t>(option.least),
                                static_cast<std::int64_t>(option.most));
}

double take_number(Arguments& arguments, std::string_view word, double fallback) {
  const RunOption& option = run_option(word);
  return arguments.take_real(std::string(word), fallback, option.least, option.most);
}

void take_run_option(Arguments& arguments, const RunOption& option, RunOptions& options) {
  std::visit(OptionReader{arguments, option, options}, option.field);
}

RunOptions take_run_options(Arguments& arguments, const RunDefaults& defaults) {
  RunOptions options{.ranks = defaults.ranks,
                     .layout = defaults.layout,
                     .schedule = defaults.schedule,
                     .tile_queries = defaults.tile_queries,
                     .tile_keys = defaults.tile_keys};
  if (defaults.most_ranks > 0) {
    options.ranks =
        static_cast<int>(arguments.take_integer("ranks", options.ranks, 1, defaults.most_ranks));
  }
  for (const RunOption& option : run_options()) {
    if (option.has_effect || (defaults.most_ranks > 0 && option.word == "ranks")) continue;
    take_run_option(arguments, option, options);
  }
  check_nodes(options);
  for (const RunOption& option : run_options()) {  // those that depend on others
    if (option.has_effect && option.has_effect(options)) {
      take_run_option(arguments, option, options);
    }
  }
  if (!arguments.given("threads")) options.threads = default_threads(options, defaults);
  return options;
}

void describe_run_options(const RunOptions& options, Json& configuration,
                          const std::function<bool(const RunOption&)>& is_wanted) {
  for (const RunOption& option : run_options()) {
    if (!sets_a_field(option) || (option.has_effect && !option.has_effect(options))) continue;
    if (is_wanted && !is_wanted(option)) continue;
    configuration[name_of(option)] = value_of(option, options);
  }
}

std::set<std::string> left_to_defaults(const Arguments& arguments) {
  std::set<std::string> names;
  for (const RunOption& option : run_options()) {
    if (!arguments.given(std::string(option.word))) names.insert(name_of(option));
  }
  names.erase(name_of(run_option("input")));  // what is computed on is told in any case
  bool has_modifiers = false;
  for (const char* word : {"softcap", "alibi", "sinks", "dropout"}) {
    has_modifiers |= arguments.given(word);
  }
  if (!has_modifiers) names.insert("modifiers");
  return names;
}

}  // namespace ringlab::cli
