#include "cli/run/job_rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/human.h"
#include "cli/run/device_run.h"
#include "cli/run/gradient_sums.h"
#include "cli/run/job_summary.h"
#include "cli/run/job_trace.h"
#include "cli/run/run_check.h"
#include "cli/run/run_costs.h"
#include "cli/run/run_options.h"
#include "cli/run/run_pace.h"
#include "cli/run/trace_file.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/transport/faulty_communicator.h"
#include "optimized/transport/tell_all.h"
#include "property_tests/sampled_check.h"

namespace ringlab::cli {
namespace {

constexpr int kDevicesTag = (1 << 20) + 8;

ring::EngineParts parts_with_faults() {
  ring::EngineParts parts;
  if (const std::optional<FaultPlan> faults = fault_plan_of_environment()) {
    parts.wrap = [faults](Communicator& network) { return make_faulty(network, *faults); };
  }
  return parts;
}

// Without the messages by which the ranks of a job agreed before it.
void subtract(const Traffic& before, RankStats& stats) {
  stats.sent_bytes -= before.sent_bytes;
  stats.sent_messages -= before.sent_messages;
  stats.received_bytes -= before.received_bytes;
  stats.received_messages -= before.received_messages;
}

// On devices copies are no messages: closed forms of messages do not apply.
void print_costs(const JobPlan& plan, const std::vector<RankSummary>& all, Json& document,
                 Output& output) {
  if (plan.carrier == Carrier::nccl) return;
  RunAccount account{.problem = plan.input.problem,
                     .options = plan.options,
                     .last_pass = plan.backward ? Pass::backward : Pass::forward,
                     .measured = {}};
  for (const RankSummary& rank : all) account.measured.push_back(&rank.stats);
  report_costs(account, document, output);
}

std::vector<std::int64_t> rows_to_check(const JobPlan& plan) {
  return verify::sample_rows(
      make_layout(plan.options, plan.input.problem.shape.q_tokens, plan.options.q_layout),
      plan.check_rows);
}

GradientCheck gradients_checked(const JobPlan& plan) {
  if (!plan.backward) return GradientCheck::no_gradients;
  return plan.input.random ? GradientCheck::by_sums : GradientCheck::none;
}

void print_checked_rows(const JobPlan& plan, Json& document, Output& output) {
  const std::vector<std::int64_t> rows = rows_to_check(plan);
  document["checked_rows"] = rows;
  output.print("checked {}\n",
               describe_rows(rows.size(), plan.input.problem, gradients_checked(plan)));
}

// What the job found, rank 0's to print.
struct JobResult {
  std::vector<RankSummary> ranks;
  std::vector<RankPace> paces;
  std::vector<TraceEvent> events;
  std::vector<std::string> devices;  // of the ranks, with Carrier::nccl
  std::string kernels, nccl;
  double clock_uncertainty_s = 0;
  std::optional<verify::GradientIdentities> sums;  // of gradients, when they are checked so
  bool right = true;
};

Json configuration_of(const JobPlan& plan, const JobResult& job) {
  Json configuration = {{"subject", plan.subject.name}};
  LoadedInput described;
  described.problem = plan.input.problem;
  described.origin = plan.input.origin;
  describe_input(described, configuration);
  describe_run_options(plan.options, configuration);
  configuration["transport"] = carrier_name(plan.carrier);
  if (plan.carrier == Carrier::nccl) {
    describe_device_job({.kernels = job.kernels, .nccl = job.nccl, .options = plan.options},
                        configuration);
  }
  return configuration;
}

void print_devices(const std::vector<std::string>& devices, Json& document, Output& output) {
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    document["ranks"][rank]["device"] = devices[rank];
    output.print("rank {} on {}\n", rank, devices[rank]);
  }
}

void print_trace(const JobPlan& plan, const JobResult& job, Json& document, Output& output) {
  const std::size_t events = write_trace(*plan.trace_path, job.events);
  document["clock_uncertainty_s"] = job.clock_uncertainty_s;
  output.print("wrote {} events to {}; the clocks of the ranks agree to ±{}\n", events,
               *plan.trace_path, report::human_seconds(job.clock_uncertainty_s));
}

void print_job(const JobPlan& plan, const JobResult& job, Output& output) {
  Json document = {{"configuration", configuration_of(plan, job)}};
  output.print_configuration(document["configuration"]);
  document["ranks"] = print_summaries(job.ranks, plan.checks(), output);
  print_devices(job.devices, document, output);
  print_costs(plan, job.ranks, document, output);
  double seconds = 0;
  for (const RankSummary& rank : job.ranks) seconds = std::max(seconds, rank.seconds);
  document.update(print_pace(job.paces, seconds, WaitsAre::measured, output));
  document["passed"] = plan.checks() ? Json(job.right) : Json(nullptr);
  if (plan.check_rows > 0) print_checked_rows(plan, document, output);
  if (job.sums) print_identities(*job.sums, document, output);
  if (plan.checks()) output.print("check  {}\n", job.right ? "ok" : "WRONG");
  if (plan.trace_path) print_trace(plan, job, document, output);
  if (plan.output && job.right) output.print("wrote {}\n", plan.output->path);
  output.finish("run", document);
}

RunResult run_on_processor(const JobPlan& plan, const std::optional<JobClock>& clock,
                           Communicator& network) {
  ring::EngineParts parts = parts_with_faults();
  if (clock) parts.clock_zero = clock->zero;
  const Traffic before = network.traffic();
  RunResult result = ring::Engine(parts).run(plan.input.problem, plan.options, plan.input.shard(),
                                             ring::OneRank(network));
  subtract(before, result.ranks.front());
  return result;
}

// The same on a device, and with it what the ranks compute on.
RunResult run_on_device(const JobPlan& plan, JobSession& session, JobResult& job) {
  ring::RankChoice mine;
  const ring::OverNccl place(
      {.network = session.network(),
       .check_others =
           [&session](const std::string& operation) { session.check_others(operation); }},
      plan.attention(), [&mine](const ring::RankChoice& choice) { mine = choice; });
  RunResult result =
      ring::Engine().run(plan.input.problem, plan.options, plan.input.shard(), place);
  job.devices = tell_all_over(session.network(), kDevicesTag)(mine.device);
  job.kernels = std::move(mine.kernels);
  job.nccl = std::move(mine.nccl);
  return result;
}

// Those of the chosen rows that this rank holds.
Report check_rows(const JobPlan& plan, int rank, const RunResult& result) {
  const Problem& problem = plan.input.problem;
  const Layout queries = make_layout(plan.options, problem.shape.q_tokens, plan.options.q_layout);
  const SampledRows mine =
      rows_of_rank(rows_to_check(plan), queries.positions(rank), result.output);
  return verify::check_sampled({.problem = problem,
                                .profile = plan.subject.profile(problem, plan.options),
                                .rows = mine.rows},
                               plan.input.random ? random_groups(*plan.input.random, mine.rows)
                                                 : verify::groups_of(plan.input.whole->input()),
                               mine.output);
}

// Of all ranks on rank 0: what checks gradients that no reference is computed for.
std::optional<verify::GradientIdentities> gradient_sums(const JobPlan& plan,
                                                        const RunResult& result,
                                                        Communicator& network) {
  if (plan.check_rows == 0 || gradients_checked(plan) != GradientCheck::by_sums) return {};
  const Problem& problem = plan.input.problem;
  const Layout queries = make_layout(plan.options, problem.shape.q_tokens, plan.options.q_layout);
  const Positions& mine = queries.positions(network.rank());
  verify::GradientIdentities sums(problem, plan.subject.profile(problem, plan.options));
  const ring::RankRows<double> given = plan.input.shard();
  sums.add<double>({.queries = mine,
                    .q = given.q,
                    .dout = *given.dout,
                    .out = result.output.out.view(),
                    .dq = result.gradients->dq.view(),
                    .k = given.k,
                    .v = given.v,
                    .dk = result.gradients->dk.view(),
                    .dv = result.gradients->dv.view()});
  gather_sums(sums, network);
  return sums;
}

RankSummary summarize(const JobPlan& plan, const RunResult& result,
                      const std::optional<JobClock>& clock, int rank) {
  RankSummary summary{.stats = result.ranks.front(),
                      .seconds = result.seconds,
                      .clock_uncertainty_s = clock ? clock->uncertainty_s : 0};
  if (!plan.checks()) return summary;
  const Report report =
      plan.check ? check_shard(plan.input.whole->input(), plan.options,
                               plan.subject.profile(plan.input.problem, plan.options), rank, result)
                 : check_rows(plan, rank, result);
  summary.right = report.passed();
  summary.worst = report.worst_ratio();
  for (const TensorReport& tensor : report.tensors) summary.compared += tensor.compared;
  return summary;
}

}  // namespace

int run_job_rank(const JobPlan& plan, Output* output, JobSession& session) {
  Communicator& network = session.network();
  std::optional<JobClock> clock;
  if (plan.trace_path) clock = align_clocks(network);
  JobResult job;
  const RunResult result = plan.carrier == Carrier::nccl ? run_on_device(plan, session, job)
                                                         : run_on_processor(plan, clock, network);
  job.ranks = gather(summarize(plan, result, clock, network.rank()), network);
  job.paces = gather_paces(pace_of(result.ranks.front()), network);
  if (plan.trace_path) job.events = gather_events(result.ranks.front().events, network);
  for (const RankSummary& rank : job.ranks) {
    job.clock_uncertainty_s = std::max(job.clock_uncertainty_s, rank.clock_uncertainty_s);
  }
  job.sums = gradient_sums(plan, result, network);
  job.right = agree_on_outcome(job.ranks, !job.sums || job.sums->hold(), network);
  if (plan.output && job.right) {
    write_job_output(*plan.output,
                     {.problem = plan.input.problem,
                      .options = plan.options,
                      .dimensions = plan.input.dimensions},
                     result, network);
  }
  if (output) print_job(plan, job, *output);
  return job.right ? 0 : 1;
}

}  // namespace ringlab::cli
