// `ringlab run SUBJECT`: one subject on given tensors, measured, checked if asked, written.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/line/launcher.h"
#include "cli/line/progress.h"
#include "cli/report/human.h"
#include "cli/report/totals.h"
#include "cli/run/job.h"
#include "cli/run/run_auto.h"
#include "cli/run/run_check.h"
#include "cli/run/run_output.h"
#include "cli/run/run_pace.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_print.h"
#include "cli/run/run_reference.h"
#include "cli/run/run_rows.h"
#include "cli/verify/report_json.h"
#include "property_tests/sampled_check.h"
#include "property_tests/subject.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

// Blames this machine's device, driver or library: what no machine can was refused before.
[[noreturn]] void refuse_on_this_machine(const verify::Subject& subject,
                                         const std::string& reason) {
  throw_environment_error({subject.name, "a problem that it can take on this machine",
                           "that it " + reason, "`optimized` has kernels of its own."});
}

Json print_result(const RunPlan& plan, const RunResult& result, Output& output) {
  const report::RunTotals totals = report::totals_of(result);
  std::vector<RankReport> ranks(result.ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].stats = result.ranks[r];
  const Json json = print_ranks(ranks, output);
  const std::string of_rounds =
      plan.rounds > 0 ? fmt::format(" (median of {})", plan.rounds) : std::string();
  output.print("\ntime {}{}  moved {} in {} messages  peak memory per rank {}\n",
               report::human_seconds(result.seconds), of_rounds,
               report::human_bytes(totals.sent_bytes), report::human_count(totals.sent_messages),
               report::human_bytes(totals.peak_bytes));
  return {{"seconds", result.seconds},
          {"sent_bytes", totals.sent_bytes},
          {"sent_messages", totals.sent_messages},
          {"peak_bytes_per_rank", totals.peak_bytes},
          {"leftover_messages", result.leftover_messages},
          {"ranks", json}};
}

void print_costs(const RunPlan& plan, const RunResult& result, Json& document, Output& output) {
  if (plan.options.device == DeviceKind::cuda) return;
  const RunAccount account = plan.account(result.ranks);
  if (plan.subject.costs && !plan.backward) {
    report_stated_costs(plan.subject, account, document, output);
  }
  if (!plan.subject.can.has(verify::Ability::schedules)) return;
  report_costs(account, document, output);
  report_memory(account, document, output);
}

RunResult run_plan(const RunPlan& plan, verify::GradientIdentities* identities) {
  if (plan.input.loaded.by_rows) {
    return run_random_rows({.input = plan.input.random(),
                            .options = plan.options,
                            .last_pass = plan.last_pass(),
                            .kept_rows = plan.rows,
                            .identities = identities});
  }
  const AttentionInput input = plan.input.loaded.input();
  if (plan.subject.makes_rows && plan.options.device == DeviceKind::cpu) {
    return run_engine_shown(input, plan.options);
  }
  const Progress progress("running " + plan.subject.name);
  try {
    return plan.subject.run(input, plan.options);
  } catch (const verify::Unsupported& reason) {
    if (!plan.subject.can.has(verify::Ability::foreign))
      refuse_on_this_machine(plan.subject, reason.what());
    refuse_problem(plan.subject, reason.what());
  }
}

Report compare_rows(const RunPlan& plan, const RunResult& result) {
  const Progress progress("comparing rows with the fp64 reference");
  const Problem& problem = plan.problem();
  const verify::SampledCheck check{
      .problem = problem,
      .profile = plan.profile(),
      .rows = plan.rows,
      .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  if (plan.input.loaded.by_rows) {
    return verify::check_sampled(check, random_groups(plan.input.random(), plan.rows),
                                 result.output);
  }
  return verify::check_sampled(check, verify::groups_of(plan.input.loaded.input()),
                               rows_of_output(result.output, plan.rows));
}

// Checks the result, where that was asked, and prints the verdict. False if it is wrong.
bool check_plan(const RunPlan& plan, const RunResult& result,
                const verify::GradientIdentities* identities, Json& document, Output& output) {
  document["passed"] = nullptr;
  CheckedResult checked;
  if (plan.check) {
    const AttentionInput input = plan.input.loaded.input();
    checked = check_result(input, plan.profile(), result);
  } else if (plan.check_rows > 0) {
    checked.report = compare_rows(plan, result);
    print_checked_rows(plan, document, output);
  } else {
    return true;
  }
  print_check(checked.report, output);
  if (plan.check) print_settlement(checked.settled, document, output);
  if (identities != nullptr) print_identities(*identities, document, output);
  const bool passed = checked.passed() && (identities == nullptr || identities->hold());
  document["passed"] = passed;
  document["check"] = report_json(checked.report);
  return passed;
}

Json print_paces(const RunPlan& plan, const RunResult& result, Output& output) {
  const bool simulated = plan.options.transport == TransportKind::simulated;
  return print_pace(result.ranks, result.seconds,
                    simulated ? WaitsAre::simulated : WaitsAre::measured, output);
}

void write_output(const RunPlan& plan, const RunResult& result, Output& output) {
  write_results(plan.output->path, plan.input.loaded, {result.output, result.gradients},
                output.files());
  output.write_at_the_end(fmt::format(
      "wrote {} to {}", result.gradients ? "o, lse, dq, dk, dv" : "o and lse", plan.output->path));
}

int run_here(Arguments& arguments) {
  Output output(arguments);
  const RunPlan plan = take_run_plan(arguments, nullptr);
  Json document = {{"configuration", print_plan(plan, {}, output)},
                   {"notes", plan.input.loaded.notes}};
  std::optional<verify::GradientIdentities> identities;
  if (plan.checks_sums()) identities.emplace(plan.problem(), plan.profile());
  verify::GradientIdentities* const sums = identities ? &*identities : nullptr;
  const RunResult result = run_in_rounds(
      plan.rounds, [&](bool is_last) { return run_plan(plan, is_last ? sums : nullptr); });
  document.update(print_result(plan, result, output));
  document.update(print_paces(plan, result, output));
  print_costs(plan, result, document, output);
  if (plan.trace_path) {
    output.write_at_the_end(write_trace(*plan.trace_path, result, output.files()));
  }
  const bool right = check_plan(plan, result, sums, document, output);
  if (plan.output && right) write_output(plan, result, output);
  return output.finish("run", document, right ? 0 : 1);
}

/// Usage error for several launched ranks without --transport: each would do all the work and write
/// the same files.
void refuse_ranks_on_their_own(const Arguments& arguments) {
  const int ranks = launched_ranks();
  if (ranks <= 1 || arguments.given("transport")) return;
  throw_usage_error({"--transport", "mpi where a launcher starts several ranks",
                     fmt::format("{} ranks of which each would run alone", ranks),
                     "Add --transport mpi for one job, or --transport threads for runs that know "
                     "nothing of each other"});
}

int run(Arguments& arguments) {
  if (place_of(arguments).is_job()) return run_job(arguments);
  refuse_ranks_on_their_own(arguments);
  const bool is_checked = arguments.given("check") || arguments.given("check-rows");
  if (arguments.operands()[0] == "reference" && !is_checked) return run_reference(arguments);
  return run_here(arguments);
}

}  // namespace

Command run_command() {
  Command command{"run", "run one subject on given tensors; print time, bytes moved, peak memory"};
  command.operands = "SUBJECT";
  command.min_operands = command.max_operands = 1;
  command.options = option_specs();
  command.options.push_back(auto_option());
  command.options.push_back(json_option());
  command.examples = {
      "ringlab run ring --text README.md --ranks 4 --mask causal --check",
      "ringlab run 06 --input qkv.safetensors --dtype bf16 --mask window:256,0 --output "
      "o.safetensors",
      "ringlab run optimized --text README.md --ranks 6 --schedule double:2 --backward --check",
      "ringlab run broadcast --input folder_of_npy --output results --json -",
      "ringlab run reference --input qkv.safetensors --dtype bf16 --exact --output "
      "golden.safetensors",
      "ringlab run optimized --random --tokens 8192 --mask causal --ranks 4 --auto laptop",
      "mpirun -n 4 ringlab run optimized --random --dtype bf16 --device cuda --transport nccl",
  };
  command.more =
      "`ringlab list` shows the subjects; `reference` is what they are compared with. Results are "
      "written only when the run, and the "
      "check if asked for, succeeded.";
  command.run = run;
  return command;
}

}  // namespace ringlab::cli
