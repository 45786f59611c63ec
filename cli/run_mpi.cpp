#include "cli/run_mpi.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/job_outcome.h"
#include "cli/job_output.h"
#include "cli/job_summary.h"
#include "cli/job_trace.h"
#include "cli/modifier_options.h"
#include "cli/report/human.h"
#include "cli/run_check.h"
#include "cli/run_costs.h"
#include "cli/run_options.h"
#include "cli/run_pace.h"
#include "cli/shard_input.h"
#include "cli/trace_file.h"
#include "optimized/cpu/vectors.h"
#include "optimized/transport/faulty_communicator.h"
#include "optimized/transport/mpi_session.h"
#include "property_tests/engine_subject.h"
#include "property_tests/sampled_check.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr double kDefaultTimeoutSeconds = 60;
// A rank that failed stays that long, so that the launcher does not end the others unheard; with
// the grace before it less than the second that mpirun leaves between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kStay{300};

struct Plan {
  RunOptions options;
  bool check = false;
  std::int64_t check_rows = 0;
  bool backward = false;
  std::optional<JobOutput> output;
  std::optional<std::string> trace_path;
  RankInput input;
};

void check_subject(const Arguments& arguments) {
  const std::string& subject = arguments.operands()[0];
  if (subject == "optimized") return;
  throw_usage_error({"--transport mpi", "the subject optimized, which runs on processes", subject,
                     fmt::format("Run {} with --transport threads.", subject)});
}

Plan take_plan(Arguments& arguments, const MpiSession& session) {
  check_subject(arguments);
  refuse_unknown_modifiers(arguments, verify::engine_subject());
  Plan plan;
  plan.options = take_run_options(
      arguments,
      {.ranks = session.ranks(), .tile_queries = cpu::kTileQueries, .tile_keys = cpu::kTileKeys});
  if (plan.options.ranks != session.ranks()) {
    throw_usage_error({"--ranks", fmt::format("{}, the size of the job", session.ranks()),
                       fmt::format("{}", plan.options.ranks),
                       "Leave it out with --transport mpi."});
  }
  if (plan.options.device != DeviceKind::cpu) {
    throw_usage_error({"--device", "cpu with --transport mpi", "cuda", ""});
  }
  plan.check = arguments.take_switch("check");
  plan.check_rows = take_check_rows(arguments);
  plan.backward = arguments.take_switch("backward");
  plan.output = take_job_output(arguments);
  // Paths of files that rank 0 alone writes are checked where it runs.
  plan.trace_path = arguments.take_text("trace");
  plan.options.trace = plan.trace_path.has_value();
  if (session.rank() == 0 && plan.trace_path) {
    check_file_name("trace", *plan.trace_path);
    check_writable("trace", *plan.trace_path);
  }
  plan.input = load_rank_input(arguments, plan.options,
                               {.rank = session.rank(),
                                .whole = plan.check || plan.check_rows > 0,
                                .whole_if_random = plan.check,
                                .gradients = plan.backward});
  arguments.reject_unused();
  check_row_count(plan.check_rows, plan.input.problem);
  return plan;
}

Json configuration_of(const Plan& plan) {
  Json configuration = {{"subject", "optimized"}};
  LoadedInput described;
  described.problem = plan.input.problem;
  described.origin = plan.input.origin;
  describe_input(described, configuration);
  describe_run_options(plan.options, configuration);
  configuration["transport"] = "mpi";
  return configuration;
}

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

void print_costs(const Plan& plan, const std::vector<RankSummary>& all, Json& document,
                 Output& output) {
  RunAccount account{.problem = plan.input.problem,
                     .options = plan.options,
                     .last_pass = plan.backward ? Pass::backward : Pass::forward,
                     .measured = {}};
  for (const RankSummary& rank : all) account.measured.push_back(&rank.stats);
  report_costs(account, document, output);
}

bool checks(const Plan& plan) { return plan.check || plan.check_rows > 0; }

std::vector<std::int64_t> rows_to_check(const Plan& plan) {
  return verify::sample_rows(
      make_layout(plan.options, plan.input.problem.shape.q_tokens, plan.options.q_layout),
      plan.check_rows);
}

void print_checked_rows(const Plan& plan, Json& document, Output& output) {
  const std::vector<std::int64_t> rows = rows_to_check(plan);
  document["checked_rows"] = rows;
  output.print("checked {}\n", describe_rows(rows.size(), plan.input.problem, plan.backward));
}

// What the job found, rank 0's to print.
struct JobResult {
  std::vector<RankSummary> ranks;
  std::vector<RankPace> paces;
  std::vector<TraceEvent> events;
  double clock_uncertainty_s = 0;
  bool right = true;
};

void print_job(const Plan& plan, const JobResult& job, Output& output) {
  Json document = {{"configuration", configuration_of(plan)}};
  output.print_configuration(document["configuration"]);
  document["ranks"] = print_summaries(job.ranks, checks(plan), output);
  print_costs(plan, job.ranks, document, output);
  double seconds = 0;
  for (const RankSummary& rank : job.ranks) seconds = std::max(seconds, rank.seconds);
  document.update(print_pace(job.paces, seconds, WaitsAre::measured, output));
  document["passed"] = checks(plan) ? Json(job.right) : Json(nullptr);
  if (plan.check_rows > 0) print_checked_rows(plan, document, output);
  if (checks(plan)) output.print("check  {}\n", job.right ? "ok" : "WRONG");
  if (plan.trace_path) {
    const std::size_t events = write_trace(*plan.trace_path, job.events);
    document["clock_uncertainty_s"] = job.clock_uncertainty_s;
    output.print("wrote {} events to {}; the clocks of the ranks agree to ±{}\n", events,
                 *plan.trace_path, report::human_seconds(job.clock_uncertainty_s));
  }
  if (plan.output && job.right) output.print("wrote {}\n", plan.output->path);
  output.finish("run", document);
}

ring::ShardResult run_engine_of(const Plan& plan, const std::optional<JobClock>& clock,
                                Communicator& network) {
  ring::EngineParts parts = parts_with_faults();
  if (clock) parts.clock_zero = clock->zero;
  const Traffic before = network.traffic();
  ring::ShardResult result = ring::run_engine_rank_with(parts, plan.input.problem, plan.options,
                                                        plan.input.shard(), network);
  subtract(before, result.stats);
  return result;
}

// Those of the chosen rows that this rank holds.
Report check_rows(const Plan& plan, int rank, const ring::ShardResult& result) {
  const Problem& problem = plan.input.problem;
  const Layout queries = make_layout(plan.options, problem.shape.q_tokens, plan.options.q_layout);
  const RankRows mine = rows_of_rank(rows_to_check(plan), queries.positions(rank), result.output);
  return verify::check_sampled({.problem = problem,
                                .profile = ring::engine_profile(problem, plan.options),
                                .rows = mine.rows},
                               plan.input.random ? random_groups(*plan.input.random, mine.rows)
                                                 : verify::groups_of(plan.input.whole->input()),
                               mine.output);
}

RankSummary summarize(const Plan& plan, const ring::ShardResult& result,
                      const std::optional<JobClock>& clock, int rank) {
  RankSummary summary{.stats = result.stats,
                      .seconds = result.seconds,
                      .clock_uncertainty_s = clock ? clock->uncertainty_s : 0};
  if (!checks(plan)) return summary;
  const Report report = plan.check
                            ? check_shard(plan.input.whole->input(), plan.options, rank, result)
                            : check_rows(plan, rank, result);
  summary.right = report.passed();
  summary.worst = report.worst_ratio();
  for (const TensorReport& tensor : report.tensors) summary.compared += tensor.compared;
  return summary;
}

int run_rank(const Plan& plan, Output* output, Communicator& network) {
  std::optional<JobClock> clock;
  if (plan.trace_path) clock = align_clocks(network);
  const ring::ShardResult result = run_engine_of(plan, clock, network);
  JobResult job;
  job.ranks = gather(summarize(plan, result, clock, network.rank()), network);
  job.paces = gather_paces(pace_of(result.stats), network);
  if (plan.trace_path) job.events = gather_events(result.stats.events, network);
  for (const RankSummary& rank : job.ranks) {
    job.clock_uncertainty_s = std::max(job.clock_uncertainty_s, rank.clock_uncertainty_s);
  }
  job.right = agree_on_outcome(job.ranks, network);
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

int tell(const MpiSession& session, const Error& error) {
  fmt::print(stderr, "ringlab: {}\n", error.what());
  if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) {
    if (!of_rank->failure().recording.empty()) {
      fmt::print(stderr, "rank {}, its last events:\n{}\n", session.rank(),
                 of_rank->failure().recording);
    }
  }
  std::fflush(stderr);
  return error.exit_code();
}

// What the ranks found wrong before the run, said by rank 0.
int end_before_run(MpiSession& session, const JobFailure& failure) {
  if (session.rank() == 0) fmt::print(stderr, "ringlab: {}\n", failure.text);
  std::fflush(stderr);
  session.finish();
  return failure.exit_code;
}

int end_with_failure(MpiSession& session, const Error& error) {
  session.abort(error.what());
  const int code = tell(session, error);
  std::this_thread::sleep_for(kStay);
  return code;
}

// A wrong --timeout is reported once there is a session to do it with.
double timeout_of(Arguments& arguments) {
  try {
    return arguments.take_real("timeout", kDefaultTimeoutSeconds, 1e-6, 1e6);
  } catch (const Error&) {
    return kDefaultTimeoutSeconds;
  }
}

int run_job(Arguments& arguments, MpiSession& session) {
  std::optional<Output> output;
  std::optional<Plan> plan;
  std::optional<Error> wrong;
  try {
    if (session.rank() == 0) output.emplace(arguments);
    arguments.take_text("json");  // rank 0's, whose other ranks would seem to ignore it
    plan = take_plan(arguments, session);
  } catch (const Error& error) {
    wrong = error;
  }
  if (const auto failure = share_failure(wrong, session.network())) {
    return end_before_run(session, *failure);
  }
  const int code = run_rank(*plan, output ? &*output : nullptr, session.network());
  session.finish();
  return code;
}

}  // namespace

bool wants_mpi(Arguments& arguments) {
  return arguments.given("transport") && arguments.take_text("transport") == "mpi";
}

int run_mpi(Arguments& arguments) {
  const std::unique_ptr<MpiSession> session = start_mpi({.timeout_s = timeout_of(arguments)});
  try {
    return run_job(arguments, *session);
  } catch (const Error& error) {
    return end_with_failure(*session, error);
  } catch (const std::exception& error) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    return end_with_failure(
        *session, Error(ErrorKind::environment,
                        {.where = fmt::format("rank {}", session->rank()),
                         .actual = memory ? std::string("out of memory") : error.what()}));
  }
}

}  // namespace ringlab::cli
