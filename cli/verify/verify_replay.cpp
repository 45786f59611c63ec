#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/report/retelling_text.h"
#include "cli/verify/verify.h"
#include "property_tests/case_runner.h"
#include "property_tests/plugins/plugin_subject.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

// The subject of a token: all before its last two slashes.
std::string subject_of_token(const std::string& token) {
  const std::size_t last = token.rfind('/');
  const std::size_t before = last == 0 ? std::string::npos : token.rfind('/', last - 1);
  return token.substr(0, std::min(before, token.size()));
}

bool names_content(const std::string& subject) { return subject.find('@') != std::string::npos; }

// The subject's name on this command line: tokens of libraries name content, which is nowhere to be
// found without its path.
std::string name_to_find(const Arguments& arguments, const std::string& in_token) {
  const std::vector<std::string>& operands = arguments.operands();
  if (names_content(in_token)) {
    if (operands.size() == 1) return operands.front();
    throw_usage_error({"--replay", "the library beside it, as the token names only its content",
                       in_token, "ringlab verify PATH --replay TOKEN"});
  }
  if (operands.empty()) return in_token;
  throw_usage_error({"--replay", "no subjects, the token names its own",
                     fmt::format("{}", fmt::join(operands, " ")), ""});
}

const char* outcome_word(const verify::LawResult& result) {
  if (result.outcome == verify::Outcome::broken) return "broken";
  return result.outcome == verify::Outcome::discarded ? "discarded" : "held";
}

/// Lines of others, set apart from ours.
std::string indented(const std::string& lines) {
  std::string text = "  ";
  for (const char letter : lines) text += letter == '\n' ? "\n  " : std::string(1, letter);
  return text;
}

/// A stage library has the title of the stage that it stands for, which does the case right.
std::optional<verify::Retelling> told_by_the_stage(const verify::Subject& subject,
                                                   const verify::Case& c) {
  for (const verify::Subject& stage : verify::all_subjects()) {
    if (stage.title == subject.title && stage.name != subject.name) return verify::retell(stage, c);
  }
  return std::nullopt;
}

report::Shown shown_of(const verify::Replay& again) {
  return {
      .of = again.replayed,
      .told = verify::retell(again.subject, again.replayed),
      .marked = again.result.outcome == verify::Outcome::broken ? again.result.worst : std::nullopt,
      .right = told_by_the_stage(again.subject, again.replayed)};
}

}  // namespace

int replay_token(Arguments& arguments, Output& output) {
  const std::string token = *arguments.take_text("replay");
  const bool draws = arguments.take_switch("draw");
  const std::string in_token = subject_of_token(token);
  const std::string wanted = name_to_find(arguments, in_token);
  RunOptions options;
  take_run_option(arguments, run_option("device"), options);
  if (options.device == DeviceKind::cuda) {
    take_run_option(arguments, run_option("deterministic"), options);
  }
  // Loading a plugin takes --timeout.
  if (!verify::names_a_plugin(wanted)) arguments.reject_unused();
  verify::Replay again = verify::replay(token, [&](const std::string&) {
    const verify::Subject subject = subject_named(wanted, arguments);
    arguments.reject_unused();
    require_device_of(subject, options.device);
    return as_asked(subject, options);
  });
  const std::string printed = again.subject.printed();
  const auto content_of = [](const std::string& id) { return id.substr(id.find('@') + 1); };
  if (names_content(in_token) && content_of(again.subject.id) != content_of(in_token)) {
    output.print("note: another library than that of the token: {} then, {} now\n", in_token,
                 again.subject.id);
  }
  const verify::ReplayRuns runs = verify::look_harder(again);
  const bool broken = again.result.outcome == verify::Outcome::broken;
  const char* outcome = outcome_word(again.result);
  output.print("subject  {}\nlaw      {} {}\n         {}\ncase     {}\n", again.subject.name,
               again.law.id, again.law.name, again.law.statement, verify::describe(again.replayed));
  output.print("{:<8} {}\n", outcome, again.result.message);
  if (runs.all > 1) output.print("broken in {} of {} runs\n", runs.broken, runs.all);
  if (!printed.empty()) {
    output.print("\nwhat it printed in the law's last run:\n{}\n", indented(printed));
  }
  std::vector<std::string> picture;
  if (draws) {
    picture = report::retelling_lines(shown_of(again));
    const std::string& law = again.law.id;
    const bool takes_it_as_it_is = law == "equals_reference" || law == "gradients_equal_reference";
    if (!takes_it_as_it_is) output.print("\nthe case as it is, before the law changes it:\n");
    output.print("\n{}\n", fmt::join(picture, "\n"));
  }
  Json document = {{"replay", token},
                   {"subject", again.subject.name},
                   {"law", again.law.id},
                   {"case", verify::describe(again.replayed)},
                   {"verdict", outcome},
                   {"runs", runs.all},
                   {"runs_broken", runs.broken},
                   {"worst_ratio", json_number(again.result.ratio)},
                   {"message", again.result.message}};
  if (!printed.empty()) document["printed"] = printed;
  if (draws) document["picture"] = picture;
  return output.finish("verify", document, broken ? 1 : 0);
}

}  // namespace ringlab::cli
