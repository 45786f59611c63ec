#include "cli/inputs/subjects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "cli/inputs/run_options.h"
#include "property_tests/plugins/plugin_subject.h"
#include "property_tests/stage_libraries/stage_subject.h"
#include "property_tests/subject_list.h"
#include "reference/core/error.h"
#include "stages/common/device_list.h"

namespace ringlab::cli {
namespace {

using verify::Ability;

constexpr double kPluginSeconds = 10;

struct NoEffect {
  std::string option, expected, subject;
};
std::optional<NoEffect> first_refusal(const Arguments& arguments, const verify::Subject& subject,
                                      const verify::Place& place,
                                      const std::vector<OptionGroup>& groups) {
  if (place.device == DeviceKind::cuda && !subject.can.has(Ability::cuda)) {
    return NoEffect{"--device", "a subject that runs on devices", subject.name};
  }
  for (const RunOption& option : run_options()) {
    const std::string word(option.word);
    if (!arguments.given(word) || !is_in(groups, option)) continue;
    std::string expected = verify::why_without_effect(subject, option, place);
    if (!expected.empty()) return NoEffect{"--" + word, std::move(expected), subject.name};
  }
  return std::nullopt;
}

void check_dtype(const verify::Subject& subject, DType dtype, DeviceKind device) {
  const auto& dtypes = subject.can_on(device).dtypes;
  if (std::ranges::count(dtypes, dtype) > 0) return;
  std::vector<std::string_view> names;
  for (const DType known : dtypes) names.push_back(dtype_info(known).name);
  throw_usage_error(
      {"--dtype",
       fmt::format("one that {} computes in{}: {}", subject.name,
                   device == DeviceKind::cuda ? " on devices" : "", fmt::join(names, ", ")),
       std::string(dtype_info(dtype).name), fmt::format("Give --dtype {}.", names.back())});
}

// True for options without effect where one rank has all tokens.
bool is_about_sharing(const RunOption& option) {
  static constexpr std::array kWords = {"layout", "direction"};
  static constexpr std::array kNeeds = {Feature::schedules, Feature::wires, Feature::checksums,
                                        Feature::slots};
  return std::ranges::count(kWords, option.word) > 0 ||
         std::ranges::count(kNeeds, option.needs) > 0;
}

// True for options without effect on subjects that know no ranks.
bool is_about_ranks(const RunOption& option) {
  static constexpr std::array kWords = {"ranks", "layout", "direction", "timeout"};
  return std::ranges::count(kWords, option.word) > 0;
}

// Chunks are passed on to a neighbour: --direction says to which.
bool goes_round(const verify::Subject& subject, const RunOptions& options) {
  if (!subject.can.has(Ability::schedules)) return subject.can.has(Ability::ring_traffic);
  return !schedule_traits(options.schedule).from_owners;
}

bool has_effect_on(const verify::Subject& subject, const verify::Place& place,
                   const RunOption& option, const RunOptions& options) {
  if (is_about_ranks(option) && !subject.can_at(place).has(Ability::many_ranks)) return false;
  if (option.word == "direction" && !goes_round(subject, options)) return false;
  return verify::why_without_effect(subject, option, place).empty();
}

}  // namespace

verify::Subject subject_named(const std::string& name, Arguments& arguments) {
  if (!verify::names_a_plugin(name)) return verify::find_subject(name);
  const double deadline_s = arguments.given("timeout")
                                ? take_number(arguments, "timeout", kPluginSeconds)
                                : kPluginSeconds;
  if (verify::names_a_stage_library(name)) {
    return verify::stage_library_subject(name, {.deadline_s = deadline_s});
  }
  return verify::plugin_subject(name, {.deadline_s = deadline_s});
}

std::vector<verify::Subject> subjects_named(Arguments& arguments) {
  if (arguments.operands().empty()) return verify::all_subjects();
  std::vector<verify::Subject> subjects;
  for (const std::string& name : arguments.operands()) {
    verify::Subject subject = subject_named(name, arguments);
    if (std::ranges::find(subjects, subject.name, &verify::Subject::name) != subjects.end()) {
      throw_usage_error({"subject " + name, "to be given once", "it more than once", ""});
    }
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

std::vector<std::string> notes_on(const std::vector<verify::Subject>& subjects) {
  std::vector<std::string> notes;
  for (const verify::Subject& subject : subjects) {
    if (!subject.can.has(Ability::lse))
      notes.push_back(subject.name + " gives no lse: it is not checked");
    if (!subject.can.has(Ability::deterministic) && subject.can.has(Ability::foreign)) {
      notes.push_back(subject.name + " promises no bits: laws about bits are skipped");
    }
  }
  const std::string missing = plugins::missing_walls();
  if (!missing.empty()) {
    notes.push_back("plugins run without " + missing + ", which this machine does not give");
  }
  return notes;
}

verify::Place place_of(const Arguments& arguments) {
  RunOptions options;
  for (const char* word : {"device", "transport"}) {
    const auto& choice = std::get<ChoiceField>(run_option(word).field);
    const auto found = std::ranges::find(choice.words, arguments.text(word));
    if (found == choice.words.end()) continue;
    choice.set(options, static_cast<std::size_t>(found - choice.words.begin()));
  }
  return {options.device, options.transport};
}

std::string transport_word(TransportKind kind) {
  return word_of(run_option("transport"), {.transport = kind});
}

void refuse_without_effect(const Arguments& arguments, const std::vector<verify::Subject>& subjects,
                           const verify::Place& place, const std::vector<OptionGroup>& groups) {
  std::optional<NoEffect> first;
  for (const verify::Subject& subject : subjects) {
    std::optional<NoEffect> refusal = first_refusal(arguments, subject, place, groups);
    if (!refusal) return;
    if (!first) first = std::move(refusal);
  }
  if (!first) return;
  const bool is_for_cpu = first->expected.ends_with("with --device cuda");
  throw_usage_error({first->option, first->expected, first->subject,
                     is_for_cpu ? "Use --device cpu: the CPU engine can."
                                : "Try optimized; `ringlab list` shows what each subject can."});
}

void check_device_options(const Arguments& arguments, const RunOptions& options) {
  if (arguments.given("deterministic") && !arguments.given("backward") &&
      options.device == DeviceKind::cuda) {
    throw_usage_error({"--deterministic", "--backward beside it", "a run without gradients",
                       "Outputs have the same bits from run to run in any case."});
  }
  if (options.as_graph && arguments.given("trace")) {
    throw_usage_error({"--trace", "no --graph beside it", "both",
                       "What is in a graph cannot be timed piece by piece: leave out one."});
  }
}

void refuse_problem(const verify::Subject& subject, const std::string& reason) {
  throw_input_error({subject.name, "a problem that it can take", "that it " + reason,
                     "`ringlab list` shows what it claims."});
}

void check_subject_takes(const verify::Subject& subject, const Problem& problem,
                         const RunOptions& options, Pass last_pass) {
  if (!subject.can.has(Ability::schedules) && options.schedule != subject.can.schedule) {
    throw_usage_error({"--schedule",
                       fmt::format("{}, the one that {} has",
                                   schedule_name({.kind = subject.can.schedule}), subject.name),
                       schedule_name(schedule_spec(options)), "optimized executes all of them."});
  }
  check_dtype(subject, problem.dtype, options.device);
  if (options.ranks > 1 && !subject.can.has(Ability::many_ranks)) {
    throw_usage_error({"--ranks", fmt::format("1, as {} runs on one rank", subject.name),
                       fmt::format("{}", options.ranks), ""});
  }
  const std::string reason =
      subject.can.has(Ability::foreign) ? verify::obstacle(subject.can, problem) : "";
  if (!reason.empty()) refuse_problem(subject, reason);
  if (options.device == DeviceKind::cuda && subject.on_devices) {
    subject.on_devices->check(problem, options, last_pass);
  }
}

void require_device_of(const verify::Subject& subject, DeviceKind device) {
  if (device == DeviceKind::cpu && !subject.can.has(Ability::cpu)) {
    throw_usage_error({"--device", fmt::format("cuda: {} runs on devices only", subject.name),
                       "cpu", "`ringlab list` shows what each subject can."});
  }
  stages::require_device(device);
  if (subject.on_devices) subject.on_devices->require();
}

verify::Subject as_asked(const verify::Subject& given, const RunOptions& options) {
  verify::Subject subject = verify::on_device(given, options.device);
  return options.deterministic ? subject : verify::with_gradients_in_any_order(std::move(subject));
}

void describe_effects(const std::vector<verify::Subject>& subjects, const verify::Place& place,
                      const RunOptions& options, Json& configuration) {
  describe_run_options(options, configuration, [&](const RunOption& option) {
    if (options.ranks == 1 && is_about_sharing(option)) return false;
    return std::ranges::any_of(subjects, [&](const verify::Subject& subject) {
      return has_effect_on(subject, place, option, options);
    });
  });
}

void describe_run(const verify::Subject& subject, const verify::Place& place,
                  const Problem& problem, const RunOptions& options, Json& configuration) {
  describe_effects({subject}, place, options, configuration);
  const bool tells = options.device == DeviceKind::cuda && subject.on_devices;
  if (!tells || place.is_job()) return;
  for (const auto& [name, value] : subject.on_devices->describe(problem, options)) {
    configuration[name] = value;
  }
}

}  // namespace ringlab::cli
