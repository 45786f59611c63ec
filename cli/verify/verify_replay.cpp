#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/verify/verify.h"
#include "property_tests/plugins/plugin_subject.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

// What a token begins with, before its last two slashes.
std::string subject_of_token(const std::string& token) {
  const std::size_t last = token.rfind('/');
  const std::size_t before = last == 0 ? std::string::npos : token.rfind('/', last - 1);
  return token.substr(0, std::min(before, token.size()));
}

}  // namespace

int replay_token(Arguments& arguments, Output& output) {
  const std::string token = *arguments.take_text("replay");
  if (!arguments.operands().empty()) {
    throw_usage_error({"--replay", "no subjects, the token names its own",
                       fmt::format("{}", fmt::join(arguments.operands(), " ")), ""});
  }
  RunOptions options;
  take_run_option(arguments, run_option("device"), options);
  if (options.device == DeviceKind::cuda) {
    take_run_option(arguments, run_option("deterministic"), options);
  }
  // Loading a plugin takes --timeout.
  if (!verify::names_a_plugin(subject_of_token(token))) arguments.reject_unused();
  const verify::Replay again = verify::replay(token, [&](const std::string& name) {
    const verify::Subject subject = subject_named(name, arguments);
    arguments.reject_unused();
    require_device_of(subject, options.device);
    return as_asked(subject, options);
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

}  // namespace ringlab::cli
