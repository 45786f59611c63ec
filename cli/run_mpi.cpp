#include "cli/run_mpi.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "cli/job_output.h"
#include "cli/report/human.h"
#include "cli/run_options.h"
#include "cli/shard_input.h"
#include "cli/text_table.h"
#include "optimized/transport/faulty_communicator.h"
#include "optimized/transport/mpi_session.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr int kSummaryTag = 1 << 20;  // far from the engine's own
constexpr double kDefaultTimeoutSeconds = 60;
// A rank that failed stays that long, so that the launcher does not end the others unheard; with
// the grace before it less than the second that mpirun leaves between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kStay{300};

// What rank 0 is told by everybody.
struct RankSummary {
  RankStats stats;
  double seconds = 0;
  double worst = 0;  // error/bound, when checked
  bool right = true;
};

using Wire = std::array<std::int64_t, 10>;

Wire to_wire(const RankSummary& summary) {
  const RankStats& stats = summary.stats;
  std::int64_t pairs = 0;
  for (const Visit& visit : stats.visits) pairs += visit.pairs;
  return {stats.sent_bytes,
          stats.sent_messages,
          stats.received_bytes,
          stats.received_messages,
          stats.peak_bytes,
          stats.peak_kv_bytes,
          pairs,
          std::bit_cast<std::int64_t>(summary.seconds),
          std::bit_cast<std::int64_t>(summary.worst),
          summary.right};
}

RankSummary from_wire(const Wire& wire) {
  RankSummary summary;
  summary.stats = {.sent_bytes = wire[0],
                   .sent_messages = wire[1],
                   .received_bytes = wire[2],
                   .received_messages = wire[3],
                   .peak_bytes = wire[4],
                   .peak_kv_bytes = wire[5]};
  summary.stats.visits = {{.owner = 0, .hop = 0, .pairs = wire[6]}};
  summary.seconds = std::bit_cast<double>(wire[7]);
  summary.worst = std::bit_cast<double>(wire[8]);
  summary.right = wire[9] != 0;
  return summary;
}

// All summaries on rank 0, nothing elsewhere.
std::vector<RankSummary> gather(const RankSummary& mine, Communicator& network) {
  Wire wire = to_wire(mine);
  if (network.rank() != 0) {
    network.wait(network.post_send(0, kSummaryTag, bytes_of(wire.data(), std::ssize(wire))));
    return {};
  }
  std::vector<RankSummary> all = {mine};
  for (int rank = 1; rank < network.ranks(); ++rank) {
    network.wait(
        network.post_receive(rank, kSummaryTag, writable_bytes_of(wire.data(), std::ssize(wire))));
    all.push_back(from_wire(wire));
  }
  return all;
}

struct Plan {
  RunOptions options;
  bool check = false;
  bool backward = false;
  std::optional<JobOutput> output;
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
  Plan plan;
  plan.options = take_run_options(arguments, {.ranks = session.ranks()});
  if (plan.options.ranks != session.ranks()) {
    throw_usage_error({"--ranks", fmt::format("{}, the size of the job", session.ranks()),
                       fmt::format("{}", plan.options.ranks),
                       "Leave it out with --transport mpi."});
  }
  if (plan.options.device != DeviceKind::cpu) {
    throw_usage_error({"--device", "cpu with --transport mpi", "cuda", ""});
  }
  plan.check = arguments.take_switch("check");
  plan.backward = arguments.take_switch("backward");
  plan.output = take_job_output(arguments);
  plan.input =
      load_rank_input(arguments, plan.options,
                      {.rank = session.rank(), .whole = plan.check, .gradients = plan.backward});
  arguments.reject_unused();
  return plan;
}

void check_rows(const Plan& plan, const ring::ShardResult& result, int rank, RankSummary& summary) {
  const AttentionInput input = plan.input.whole->input();
  const std::int64_t tokens = input.problem.shape.q_tokens;
  ExactOptions options;
  options.rows = make_layout(plan.options, tokens, plan.options.q_layout).positions(rank).to_list();
  if (options.rows.empty()) return;  // an empty list would mean all of them
  const ExactForward exact = exact_forward(input, options);
  const NumericsProfile profile = ring::engine_profile(input.problem, plan.options);
  const Report report =
      compare_forward(result.output, exact, forward_tolerance(input, exact, profile, options));
  summary.right = report.passed();
  for (const TensorReport& tensor : report.tensors) {
    summary.worst = std::max(summary.worst, tensor.worst.ratio);
  }
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

Json print_summaries(const std::vector<RankSummary>& all, bool checked, Output& output) {
  TextTable table({{"rank", Align::right},
                   {"time", Align::right},
                   {"sent", Align::right},
                   {"messages", Align::right},
                   {"received", Align::right},
                   {"peak memory", Align::right},
                   {"of it K/V", Align::right},
                   {"pairs computed", Align::right},
                   {checked ? "worst error/bound" : "", Align::right}});
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const RankStats& stats = all[rank].stats;
    const std::int64_t pairs = stats.visits.empty() ? 0 : to_wire(all[rank])[6];
    table.add({fmt::format("{}", rank), report::human_seconds(all[rank].seconds),
               report::human_bytes(stats.sent_bytes), report::human_count(stats.sent_messages),
               report::human_bytes(stats.received_bytes), report::human_bytes(stats.peak_bytes),
               report::human_bytes(stats.peak_kv_bytes), report::human_count(pairs),
               checked ? report::human_ratio(all[rank].worst) : ""});
    ranks.push_back({{"rank", rank},
                     {"seconds", all[rank].seconds},
                     {"sent_bytes", stats.sent_bytes},
                     {"sent_messages", stats.sent_messages},
                     {"received_bytes", stats.received_bytes},
                     {"peak_bytes", stats.peak_bytes},
                     {"pairs", pairs}});
  }
  output.print("\n{}", table.text());
  return ranks;
}

// Whether every rank is right, as rank 0 found.
bool agree_on_outcome(const std::vector<RankSummary>& all, Communicator& network) {
  std::int64_t right = 1;
  if (network.rank() == 0) {
    for (const RankSummary& summary : all) right &= summary.right ? 1 : 0;
    for (int rank = 1; rank < network.ranks(); ++rank) {
      network.wait(network.post_send(rank, kSummaryTag, bytes_of(&right, 1)));
    }
  } else {
    network.wait(network.post_receive(0, kSummaryTag, writable_bytes_of(&right, 1)));
  }
  return right != 0;
}

ring::EngineParts parts_with_faults() {
  ring::EngineParts parts;
  if (const std::optional<FaultPlan> faults = fault_plan_of_environment()) {
    parts.wrap = [faults](Communicator& network) { return make_faulty(network, *faults); };
  }
  return parts;
}

int run_rank(Arguments& arguments, MpiSession& session) {
  const Plan plan = take_plan(arguments, session);
  Communicator& network = session.network();
  const ring::ShardResult result = ring::run_engine_rank_with(
      parts_with_faults(), plan.input.problem, plan.options, plan.input.shard(), network);
  RankSummary mine;
  mine.stats = result.stats;
  mine.seconds = result.seconds;
  if (plan.check) check_rows(plan, result, session.rank(), mine);
  const std::vector<RankSummary> all = gather(mine, network);
  const bool right = agree_on_outcome(all, network);
  if (plan.output && right) {
    write_job_output(*plan.output,
                     {.problem = plan.input.problem,
                      .options = plan.options,
                      .dimensions = plan.input.dimensions},
                     result, network);
  }
  if (session.rank() == 0) {
    Output output(arguments);
    Json document = {{"configuration", configuration_of(plan)}};
    output.print_configuration(document["configuration"]);
    document["ranks"] = print_summaries(all, plan.check, output);
    document["passed"] = plan.check ? Json(right) : Json(nullptr);
    if (plan.check) output.print("check  {}\n", right ? "ok" : "WRONG");
    if (plan.output && right) output.print("wrote {}\n", plan.output->path);
    output.finish("run", document);
  }
  return right ? 0 : 1;
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

// A mistake in the command line: all ranks have found it, and one says so.
int end_with_usage_error(MpiSession& session, const Error& error) {
  if (session.rank() == 0) tell(session, error);
  session.finish();
  return error.exit_code();
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

}  // namespace

bool wants_mpi(Arguments& arguments) {
  return arguments.given("transport") && arguments.take_text("transport") == "mpi";
}

int run_mpi(Arguments& arguments) {
  const std::unique_ptr<MpiSession> session = start_mpi({.timeout_s = timeout_of(arguments)});
  try {
    const int code = run_rank(arguments, *session);
    session->finish();
    return code;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) return end_with_usage_error(*session, error);
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
