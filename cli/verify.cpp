// `ringlab verify [SUBJECT…]`: subjects against the exact reference, on an input and under the
// laws.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/build_info.h"
#include "cli/modifier_options.h"
#include "cli/plugin_subjects.h"
#include "cli/problem_options.h"
#include "cli/report_json.h"
#include "cli/run_options.h"
#include "cli/verify_text.h"
#include "cli/verify_work.h"
#include "property_tests/plugins/plugin_subject.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"
#include "stages/common/device_list.h"

namespace ringlab::cli {
namespace {

constexpr int kMostSubjects = 1000;

std::vector<verify::Subject> take_subjects(Arguments& arguments) {
  if (arguments.operands().empty()) return verify::all_subjects();
  std::vector<verify::Subject> subjects;
  for (const std::string& name : arguments.operands()) {
    verify::Subject subject = subject_named(name, arguments);
    for (const verify::Subject& other : subjects) {
      if (other.name == subject.name) {
        throw_usage_error({"subject " + name, "to be given once", "it more than once", ""});
      }
    }
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

std::vector<std::string> take_laws(Arguments& arguments) {
  std::vector<std::string> ids;
  const std::optional<std::string> text = arguments.take_text("laws");
  if (!text) return ids;
  for (std::size_t begin = 0; begin <= text->size();) {
    const std::size_t end = std::min(text->find(',', begin), text->size());
    ids.push_back(verify::find_law(text->substr(begin, end - begin)).id);
    begin = end + 1;
  }
  return ids;
}

// Subjects that know no modifiers skip the input; one of them at least must not.
void check_some_can(const std::vector<verify::Subject>& subjects, const Arguments& arguments) {
  for (const verify::Subject& subject : subjects) {
    if (subject.can.modifiers) return;
  }
  for (const verify::Subject& subject : subjects) refuse_unknown_modifiers(arguments, subject);
}

// Those that have no kernels for devices are left out, or refused where they were asked for.
void keep_those_on_devices(std::vector<verify::Subject>& subjects, const Arguments& arguments) {
  for (const verify::Subject& subject : subjects) {
    if (subject.can.cuda || arguments.operands().empty()) continue;
    throw_usage_error({"--device", "subjects that run on devices", subject.name,
                       "`ringlab list` shows what each subject can."});
  }
  std::erase_if(subjects, [](const verify::Subject& subject) { return !subject.can.cuda; });
}

VerifyPlan take_plan(Arguments& arguments, bool quick) {
  VerifyPlan plan;
  plan.subjects = take_subjects(arguments);
  plan.laws.seed = arguments.take_unsigned("seed", 1);
  plan.laws.cases_per_law =
      static_cast<int>(arguments.take_integer("cases", quick ? 10 : 40, 1, 1'000'000));
  plan.laws.laws = take_laws(arguments);
  plan.sampled_rows = arguments.take_integer("rows", quick ? 64 : 256, 2, INT32_MAX);
  return plan;
}

Json configuration_of(const VerifyPlan& plan, const LoadedInput& loaded,
                      const RunOptions& options) {
  Json configuration;
  std::vector<std::string> names;
  for (const verify::Subject& subject : plan.subjects) names.push_back(subject.name);
  configuration["subjects"] = fmt::format("{}", fmt::join(names, " "));
  describe_input(loaded, configuration);
  describe_run_options(options, configuration);
  const std::int64_t tokens = loaded.problem.shape.q_tokens;
  configuration["rows_compared"] =
      tokens <= plan.sampled_rows ? "all" : fmt::format("{} of {}", plan.sampled_rows, tokens);
  configuration["cases_per_law"] = plan.laws.cases_per_law;
  configuration["laws"] =
      plan.laws.laws.empty() ? "all" : fmt::format("{}", fmt::join(plan.laws.laws, " "));
  configuration["seed"] = plan.laws.seed;
  return configuration;
}

report::VerifyRun make_run(const Json& configuration, const LoadedInput& loaded,
                           const RunOptions& options) {
  report::VerifyRun run;
  for (const auto& [name, value] : configuration.items()) {
    run.configuration.emplace_back(name,
                                   value.is_string() ? value.get<std::string>() : value.dump());
  }
  const BuildInfo build = build_info();
  run.version = build.version;
  run.compiler = build.compiler + ", " + build.build_type;
  run.flags = build.flags;
  run.notes = loaded.notes;
  run.problem = loaded.problem;
  run.options = options;
  return run;
}

// What a token begins with, before its last two slashes.
std::string subject_of(const std::string& token) {
  const std::size_t last = token.rfind('/');
  const std::size_t before = last == 0 ? std::string::npos : token.rfind('/', last - 1);
  return token.substr(0, std::min(before, token.size()));
}

int replay(Arguments& arguments, Output& output) {
  const std::string token = *arguments.take_text("replay");
  if (!arguments.operands().empty()) {
    throw_usage_error({"--replay", "no subjects, the token names its own",
                       fmt::format("{}", fmt::join(arguments.operands(), " ")), ""});
  }
  const auto device = arguments.take_choice<DeviceKind>(
      "device", DeviceKind::cpu, {{"cpu", DeviceKind::cpu}, {"cuda", DeviceKind::cuda}});
  // Loading a plugin takes --timeout.
  if (!verify::names_a_plugin(subject_of(token))) arguments.reject_unused();
  const verify::Replay again = verify::replay(token, [&](const std::string& name) {
    verify::Subject subject = subject_named(name, arguments);
    arguments.reject_unused();
    stages::require_device(device);
    return verify::on_device(std::move(subject), device);
  });
  const bool broken = again.result.outcome == verify::Outcome::broken;
  const char* outcome = broken                                               ? "broken"
                        : again.result.outcome == verify::Outcome::discarded ? "discarded"
                                                                             : "held";
  output.print("subject  {}\nlaw      {} {}\n         {}\ncase     {}\n", again.subject.name,
               again.law.id, again.law.name, again.law.statement, verify::describe(again.replayed));
  output.print("{}  {}\n", outcome, again.result.message);
  output.finish("verify", {{"replay", token},
                           {"subject", again.subject.name},
                           {"law", again.law.id},
                           {"case", verify::describe(again.replayed)},
                           {"verdict", outcome},
                           {"worst_ratio", json_number(again.result.ratio)},
                           {"message", again.result.message}});
  return broken ? 1 : 0;
}

int run_verification(Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  Output output(arguments);
  if (arguments.given("replay")) return replay(arguments, output);
  const bool quick = arguments.take_switch("quick");
  VerifyPlan plan = take_plan(arguments, quick);
  check_some_can(plan.subjects, arguments);
  const RunOptions options = take_run_options(arguments, {4, LayoutKind::zigzag});
  if (options.device == DeviceKind::cuda) keep_those_on_devices(plan.subjects, arguments);
  const std::optional<std::string> page = arguments.take_text("html");
  if (page) check_writable("html", *page);
  LoadedInput loaded =
      load_input(arguments, {.tokens = quick ? 256 : 1024, .mask = "causal", .built_in = true});
  arguments.reject_unused();
  stages::require_device(options.device);
  for (const std::string& note : notes_on(plan.subjects)) loaded.notes.push_back(note);

  const Json configuration = configuration_of(plan, loaded, options);
  output.print_configuration(configuration);
  for (const std::string& note : loaded.notes) output.print("note: {}\n", note);
  report::VerifyRun run = make_run(configuration, loaded, options);
  run.subjects = verify_subjects(plan, loaded, options);
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print_verification(run, output);
  if (page) {
    io::write_file(*page, report::verify_page(run));
    output.print("report in {}\n", *page);
  }
  output.finish("verify", {{"configuration", configuration},
                           {"notes", loaded.notes},
                           {"passed", run.passed()},
                           {"seconds", run.seconds},
                           {"subjects", subjects_json(run)}});
  return run.passed() ? 0 : 1;
}

}  // namespace

Command verify_command() {
  Command command{"verify", "subjects against the exact reference: on an input and under the laws"};
  command.operands = "[SUBJECT…]";
  command.max_operands = kMostSubjects;
  command.options = problem_options();
  for (OptionSpec& option : command.options) {
    if (option.name == "seed") option.applies.clear();
    if (option.name == "mask") option.help += " (causal)";
  }
  for (const OptionSpec& option : run_option_specs()) command.options.push_back(option);
  const std::vector<OptionSpec> own = {
      {"rows", "N", "query rows per head to compare with the reference (256)"},
      {"cases", "N", "random cases per law (40)"},
      {"laws", "ID,ID,…", "only these laws (all)"},
      {"quick", "", "fewer tokens, rows and cases"},
      {"replay", "TOKEN", "run one failing case again"},
      {"html", "FILE", "write a report with pictures"},
      json_option()};
  command.options.insert(command.options.end(), own.begin(), own.end());
  command.examples = {
      "ringlab verify",
      "ringlab verify ring causal_ring --text README.md --mask causal+window:256,0 --html "
      "report.html",
      "ringlab verify 05 --input qkv.safetensors --dtype bf16 --ranks 6 --json -",
      "ringlab verify --laws P14,P29 --cases 1000 --seed 7",
      "ringlab verify ./libattention.so --timeout 2",
  };
  command.more =
      "Without subjects all of them are verified; without --input and --text a built-in random "
      "input "
      "is used. Ranks default to 4 and the layout to zigzag. The laws use small random cases of "
      "their "
      "own, on the same device.\n\n" +
      std::string(kAboutPlugins);
  command.run = run_verification;
  return command;
}

}  // namespace ringlab::cli
