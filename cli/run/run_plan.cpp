#include "cli/run/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/run/run_auto.h"
#include "cli/run/run_check.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/device_engine.h"
#include "property_tests/sampled_check.h"
#include "property_tests/subject_list.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

void check_runs_on(const verify::Subject& subject, TransportKind carrier) {
  if (subject.runs_on(carrier)) return;
  std::vector<std::string> names;
  for (const auto& subjects : {verify::all_subjects(), verify::vendor_subjects()}) {
    for (const verify::Subject& one : subjects) {
      if (one.runs_on(carrier)) names.push_back(one.name);
    }
  }
  throw_usage_error({"--transport " + transport_word(carrier),
                     fmt::format("{}, whose ranks can be processes", fmt::join(names, " or ")),
                     subject.name, fmt::format("Run {} with --transport threads.", subject.name)});
}

void check_device(DeviceKind device, TransportKind carrier) {
  const bool on_devices = device == DeviceKind::cuda;
  if (carrier == TransportKind::mpi && on_devices) {
    throw_usage_error(
        {"--device", "cpu with --transport mpi", "cuda", "--transport nccl is for devices."});
  }
  if (carrier == TransportKind::nccl && !on_devices) {
    throw_usage_error({"--device", "cuda with --transport nccl", "cpu",
                       "Give --device cuda; --transport mpi is for CPUs."});
  }
}

RunOptions take_options_of_job(Arguments& arguments, TransportKind carrier, int ranks) {
  RunOptions options = take_run_options(
      arguments, {.ranks = ranks, .tile_queries = cpu::kTileQueries, .tile_keys = cpu::kTileKeys});
  if (options.ranks != ranks) {
    throw_usage_error({"--ranks", fmt::format("{}, the size of the job", ranks),
                       fmt::format("{}", options.ranks),
                       fmt::format("Leave it out with --transport {}.", transport_word(carrier))});
  }
  check_device(options.device, carrier);
  return options;
}

RunOptions take_options(Arguments& arguments, const RunPlan& plan, const JobSession* session) {
  if (session != nullptr) {
    return take_options_of_job(arguments, plan.place.transport, session->ranks());
  }
  return take_run_options(arguments,
                          {.schedule = plan.subject.can.schedule,
                           .tile_queries = plan.subject.tile_queries,
                           .tile_keys = plan.subject.tile_keys,
                           .many_threads = plan.subject.can.has(verify::Ability::threads)});
}

// Takes --trace. Rank 0 alone writes the file, and checks its path where it runs.
void take_trace(Arguments& arguments, const JobSession* session, RunPlan& plan) {
  plan.trace_path = arguments.take_text("trace");
  plan.options.trace = plan.trace_path.has_value();
  if (plan.trace_path && (session == nullptr || session->rank() == 0)) {
    check_file("trace", *plan.trace_path);
  }
}

RankInput take_input(Arguments& arguments, const RunPlan& plan, const JobSession* session) {
  if (session != nullptr) {
    return load_rank_input(arguments, plan.options,
                           {.rank = session->rank(),
                            .whole = plan.checks(),
                            .whole_if_random = plan.check,
                            .gradients = plan.backward});
  }
  // A check of all rows, or an output, needs the whole input.
  const bool by_rows = plan.subject.makes_rows && !plan.check && !plan.output;
  return {.loaded = load_input(arguments,
                               {.gradients = plan.backward ? Gradients::of_input : Gradients::none,
                                .by_rows = by_rows})};
}

// Bytes of random input that a check of some rows makes: q, k and v of a group of heads, as
// doubles; for sums of gradients, before that, the inputs of a rank once more.
std::int64_t check_bytes(const RunPlan& plan) {
  if (plan.check_rows == 0) return 0;
  const Shape& s = plan.problem().shape;
  const std::int64_t rows = 8 * (s.q_tokens * s.head_dim * (s.q_heads / s.kv_heads) +
                                 s.kv_tokens * (s.head_dim + s.v_dim));
  if (!plan.backward) return rows;
  const std::int64_t inputs = s.q().size() + s.k().size() + s.v().size() + s.out().size();
  return std::max(rows, inputs / plan.options.ranks * dtype_info(plan.problem().dtype).bytes);
}

// Checks that the subject takes the problem, and that it can run here.
void check_problem_of(const RunPlan& plan) {
  check_subject_takes(plan.subject, plan.problem(), plan.options, plan.last_pass());
  if (!plan.place.is_job()) {
    require_device_of(plan.subject, plan.options.device);
    if (plan.input.loaded.by_rows) check_run_fits_memory(plan.account(), check_bytes(plan));
  } else if (plan.place.transport == TransportKind::nccl) {
    ring::require_nccl();
    if (plan.subject.on_devices) plan.subject.on_devices->require();
  }
}

}  // namespace

RunAccount RunPlan::account(const std::vector<RankStats>& ranks) const {
  RunAccount account{
      .problem = problem(), .options = options, .last_pass = last_pass(), .measured = {}};
  for (const RankStats& rank : ranks) account.measured.push_back(&rank);
  return account;
}

RunResult run_in_rounds(std::int64_t rounds, const std::function<RunResult(bool)>& run) {
  RunResult result = run(rounds == 0);
  if (rounds == 0) return result;
  std::vector<double> seconds;
  for (std::int64_t round = 1; round <= rounds; ++round) {
    result = run(round == rounds);
    seconds.push_back(result.seconds);
  }
  const auto middle = seconds.begin() + rounds / 2;
  std::ranges::nth_element(seconds, middle);
  result.seconds = *middle;
  return result;
}

RunPlan take_run_plan(Arguments& arguments, const JobSession* session) {
  RunPlan plan{.subject = subject_named(arguments.operands()[0], arguments),
               .place = place_of(arguments),
               .options = {}};
  if (plan.place.is_job()) check_runs_on(plan.subject, plan.place.transport);
  refuse_without_effect(arguments, {plan.subject}, plan.place);
  plan.options = take_options(arguments, plan, session);
  check_device_options(arguments, plan.options);
  plan.defaults = left_to_defaults(arguments);
  plan.check = arguments.take_switch("check");
  plan.check_rows = take_check_rows(arguments);
  if (arguments.given("rounds")) plan.rounds = take_whole(arguments, "rounds", 0);
  plan.backward = arguments.take_switch("backward");
  plan.output = take_job_output(arguments, plan.place);
  take_trace(arguments, session, plan);
  plan.input = take_input(arguments, plan, session);
  if (session == nullptr) {
    choose_way(arguments, plan);
  } else {
    plan.fault = fault_plan_of_environment();
  }
  arguments.reject_unused();
  check_row_count(plan.check_rows, plan.problem());
  if (plan.check_rows > 0) verify::refuse_dropout(plan.problem());
  plan.rows = verify::sample_rows(
      make_layout(plan.options, plan.problem().shape.q_tokens, plan.options.q_layout),
      plan.check_rows);
  check_problem_of(plan);
  return plan;
}

}  // namespace ringlab::cli
