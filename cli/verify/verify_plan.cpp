#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/verify/verify.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

/// The part of the planned cases that each of all subjects is given.
constexpr int kPlannedApart = 4;
constexpr std::int64_t kMostRounds = 1'000'000'000;

std::vector<std::string> take_laws(Arguments& arguments) {
  std::vector<std::string> ids;
  for (const std::string& word : arguments.take_words("laws")) {
    ids.push_back(verify::find_law(word).id);
  }
  return ids;
}

// True if options give a problem; --seed alone does not, as it seeds the laws, too.
bool is_problem_given(const Arguments& arguments) {
  std::vector<OptionSpec> options = option_specs({OptionGroup::problem});
  std::erase_if(options, [](const OptionSpec& option) { return option.name == "seed"; });
  return !arguments.given_options(options).empty();
}

// With --time rounds are short, so that every law has its share early.
int customary_cases(const Arguments& arguments, bool quick) {
  return quick || arguments.given("time") || arguments.given("rounds") ? 10 : 40;
}

void take_rounds(Arguments& arguments, VerifyPlan& plan) {
  constexpr double kLeast = 1e-3, kMost = 1e9;
  if (arguments.given("time")) plan.seconds = arguments.take_real("time", 0, kLeast, kMost);
  plan.rounds = arguments.take_integer("rounds", plan.seconds ? kMostRounds : 1, 1, kMostRounds);
}

}  // namespace

void keep_those_on_devices(std::vector<verify::Subject>& subjects, const Arguments& arguments) {
  for (const verify::Subject& subject : subjects) {
    if (subject.can.has(verify::Ability::cuda) || arguments.operands().empty()) continue;
    throw_usage_error({"--device", "subjects that run on devices", subject.name,
                       "`ringlab list` shows what each subject can."});
  }
  std::erase_if(subjects, [](const verify::Subject& subject) {
    return !subject.can.has(verify::Ability::cuda);
  });
}

VerifyPlan take_plan(Arguments& arguments, bool quick) {
  VerifyPlan plan;
  plan.subjects = subjects_named(arguments);
  plan.laws.seed = arguments.take_unsigned("seed", 1);
  plan.laws.cases_per_law = static_cast<int>(
      arguments.take_integer("cases", customary_cases(arguments, quick), 1, 1'000'000));
  take_rounds(arguments, plan);
  plan.laws.laws = take_laws(arguments);
  plan.is_named = !arguments.operands().empty();
  if (!plan.is_named) plan.laws.planned_apart = kPlannedApart;
  plan.is_given_problem = is_problem_given(arguments);
  plan.wants_gradients = arguments.take_switch("backward");
  plan.is_strict = arguments.take_switch("strict");
  plan.required = take_required(arguments);
  plan.sampled_rows = arguments.take_integer("rows", quick ? 64 : 256, 2, INT32_MAX);
  return plan;
}

Json configuration_of(const VerifyPlan& plan, const LoadedInput& loaded,
                      const RunOptions& options) {
  Json configuration = Json::object();
  std::vector<std::string> names;
  for (const verify::Subject& subject : plan.subjects) names.push_back(subject.name);
  configuration["subjects"] = fmt::format("{}", fmt::join(names, " "));
  describe_input(loaded, configuration);
  describe_effects(plan.subjects, {.device = options.device}, options, configuration);
  const std::int64_t tokens = loaded.problem.shape.q_tokens;
  configuration["rows_compared"] =
      tokens <= plan.sampled_rows ? "all" : fmt::format("{} of {}", plan.sampled_rows, tokens);
  configuration["cases_per_law"] = plan.laws.cases_per_law;
  if (plan.seconds) configuration["time_s"] = *plan.seconds;
  if (plan.rounds != (plan.seconds ? kMostRounds : 1)) configuration["rounds"] = plan.rounds;
  configuration["laws"] =
      plan.laws.laws.empty() ? "all" : fmt::format("{}", fmt::join(plan.laws.laws, " "));
  configuration["seed"] = plan.laws.seed;
  return configuration;
}

std::set<std::string> verify_defaults(const Arguments& arguments) {
  static constexpr std::array<std::pair<const char*, const char*>, 3> kOwn = {
      {{"rows", "rows_compared"}, {"cases", "cases_per_law"}, {"laws", "laws"}}};
  std::set<std::string> names = left_to_defaults(arguments);
  for (const auto& [option, name] : kOwn) {
    if (!arguments.given(option)) names.insert(name);
  }
  return names;
}

}  // namespace ringlab::cli
