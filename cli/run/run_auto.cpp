#include "cli/run/run_auto.h"

#include <fmt/format.h>

#include "reference/core/error.h"
#include "reference/model/machine_file.h"
#include "reference/model/planner.h"

namespace ringlab::cli {
namespace {

void refuse_beside_auto(const Arguments& arguments) {
  for (const char* word : {"layout", "schedule", "slots"}) {
    if (!arguments.given(word)) continue;
    throw_usage_error(
        {fmt::format("--{}", word), "to be left to --auto", "both", "Leave out one of them."});
  }
}

}  // namespace

OptionSpec auto_option() {
  return {"auto", "MACHINE",
          "layout, schedule and slots as `ringlab plan` chooses them for this machine: a name, or "
          "the file of `ringlab doctor --measure`",
          "with optimized, in this process"};
}

void choose_way(Arguments& arguments, RunPlan& plan) {
  if (!plan.subject.can.has(verify::Ability::schedules)) return;
  const auto name = arguments.take_text("auto");
  if (!name) return;
  refuse_beside_auto(arguments);
  model::Job job{.problem = plan.problem(), .options = plan.options};
  if (plan.backward) job.passes.push_back(Pass::backward);
  // A way that does not fit is refused later, with the memory that is missing.
  plan.options = model::fastest_way(job, model::machine_named(*name));
  for (const char* chosen : {"layout", "schedule", "slots"}) plan.defaults.erase(chosen);
}

}  // namespace ringlab::cli
