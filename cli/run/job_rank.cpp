#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/report/human.h"
#include "cli/run/job.h"
#include "cli/run/run_check.h"
#include "cli/run/run_output.h"
#include "cli/run/run_pace.h"
#include "cli/run/run_print.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/transport/tell_all.h"
#include "property_tests/sampled_check.h"

namespace ringlab::cli {
namespace {

constexpr int kVerdictTag = (1 << 20) + 5;
constexpr int kNamesTag = (1 << 20) + 6;

// Subtracts the messages by which the ranks of a job agreed before the run.
void subtract(const Traffic& before, RankStats& stats) {
  stats.sent_bytes -= before.sent_bytes;
  stats.sent_messages -= before.sent_messages;
  stats.received_bytes -= before.received_bytes;
  stats.received_messages -= before.received_messages;
}

// The results of the job, for rank 0 to print.
struct JobResult {
  std::vector<RankReport> ranks;
  std::vector<TraceEvent> events;
  verify::RunFacts facts;                          // what the ranks compute with
  std::optional<verify::GradientIdentities> sums;  // of gradients, when they are checked so
  bool right = true;

  double seconds() const {
    double longest = 0;
    for (const RankReport& rank : ranks) longest = std::max(longest, rank.seconds);
    return longest;
  }
  verify::Settlement settled() const {
    verify::Settlement sum;
    for (const RankReport& rank : ranks) sum.add(rank.settled);
    return sum;
  }
};

void print_devices(const std::vector<RankReport>& ranks, Json& document, Output& output) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].device.empty()) continue;
    document["ranks"][rank]["device"] = ranks[rank].device;
    output.print("rank {} on {}\n", rank, ranks[rank].device);
  }
}

void print_verdict(const JobResult& job, Json& document, Output& output) {
  std::int64_t unbounded = 0;
  for (const RankReport& rank : job.ranks) unbounded += rank.unbounded;
  document["unbounded"] = unbounded;
  output.print("check  {}{}\n", job.right ? "ok" : "WRONG", wide_bounds(unbounded));
}

std::string places_of(const JobOutput& output, int ranks) {
  if (output.shards == OutputShards::merged) return output.path;
  return fmt::format("{} … {}", shard_path(output.path, 0).string(),
                     shard_path(output.path, ranks - 1).string());
}

void print_trace(const std::string& path, const JobResult& job, Json& document, Output& output) {
  double uncertainty_s = 0;
  for (const RankReport& rank : job.ranks) {
    uncertainty_s = std::max(uncertainty_s, rank.clock_uncertainty_s);
  }
  document["clock_uncertainty_s"] = uncertainty_s;
  output.write_at_the_end(fmt::format("{}; the clocks of the ranks agree to ±{}",
                                      write_trace(path, job.events, output.files()),
                                      report::human_seconds(uncertainty_s)));
}

void print_job(const RunPlan& plan, const JobResult& job, Output& output) {
  std::vector<RankStats> stats;
  for (const RankReport& rank : job.ranks) stats.push_back(rank.stats);
  Json document = {{"configuration", print_plan(plan, job.facts, output)}};
  document["ranks"] = print_ranks(job.ranks, output);
  print_devices(job.ranks, document, output);
  // On devices copies are no messages: closed forms of messages do not apply.
  const bool by_messages = plan.place.transport == TransportKind::mpi;
  if (by_messages) report_costs(plan.account(stats), document, output);
  document.update(print_pace(stats, job.seconds(), WaitsAre::measured, output));
  document["passed"] = plan.checks() ? Json(job.right) : Json(nullptr);
  if (plan.check_rows > 0) print_checked_rows(plan, document, output);
  if (plan.check) print_settlement(job.settled(), document, output);
  if (job.sums) print_identities(*job.sums, document, output);
  if (plan.checks()) print_verdict(job, document, output);
  if (plan.trace_path) print_trace(*plan.trace_path, job, document, output);
  if (plan.output && job.right) {
    output.write_at_the_end(fmt::format("wrote {}", places_of(*plan.output, plan.options.ranks)));
  }
  output.prepare("run", document);
}

RunResult run_on_processor(const RunPlan& plan, const std::optional<JobClock>& clock,
                           Communicator& network) {
  ring::EngineParts parts;
  if (plan.fault) {
    parts.wrap = [&plan](Communicator& below) { return make_faulty(below, *plan.fault); };
  }
  if (clock) parts.clock_zero = clock->zero;
  const Traffic before = network.traffic();
  RunResult result = ring::Engine(parts).run(plan.problem(), plan.options, plan.input.shard(),
                                             ring::OneRank(network));
  subtract(before, result.ranks.front());
  return result;
}

// The run on a device; sets the device of `mine`, and kernels and NCCL in the facts of `job`.
RunResult run_on_device(const RunPlan& plan, JobSession& session, JobResult& job,
                        RankReport& mine) {
  const ring::OverNccl place(
      {.network = session.network(),
       .check_others =
           [&session](const std::string& operation) { session.check_others(operation); }},
      plan.subject.attention, [&](const ring::RankChoice& choice) {
        mine.device = choice.device;
        job.facts = {{"kernels", choice.kernels}, {"nccl", choice.nccl}};
      });
  return ring::Engine().run(plan.problem(), plan.options, plan.input.shard(), place);
}

// Compares those of the chosen rows that this rank holds.
Report check_rows(const RunPlan& plan, int rank, const RunResult& result) {
  const Problem& problem = plan.problem();
  const Layout queries = make_layout(plan.options, problem.shape.q_tokens, plan.options.q_layout);
  const SampledRows mine = rows_of_rank(plan.rows, queries.positions(rank), result.output);
  return verify::check_sampled({.problem = problem, .profile = plan.profile(), .rows = mine.rows},
                               plan.input.loaded.by_rows
                                   ? random_groups(plan.input.random(), mine.rows)
                                   : verify::groups_of(plan.input.loaded.input()),
                               mine.output);
}

// This rank's share of the sums that check gradients without a reference.
std::vector<double> sums_of(const RunPlan& plan, int rank, const RunResult& result) {
  const Layout queries =
      make_layout(plan.options, plan.problem().shape.q_tokens, plan.options.q_layout);
  verify::GradientIdentities sums(plan.problem(), plan.profile());
  const ring::RankRows<double> given = plan.input.shard();
  sums.add(
      verify::gradient_rows(queries.positions(rank), given, result.output.out, *result.gradients));
  return sums.gathered();
}

void check_mine(const RunPlan& plan, int rank, const RunResult& result, RankReport& mine) {
  const CheckedResult checked =
      plan.check
          ? check_shard(plan.input.loaded.input(), plan.options, plan.profile(), rank, result)
          : CheckedResult{.report = check_rows(plan, rank, result), .settled = {}};
  mine.right = checked.passed();
  mine.worst = checked.report.worst_ratio();
  for (const TensorReport& tensor : checked.report.tensors) {
    mine.compared += tensor.compared;
    mine.unbounded += tensor.unbounded;
  }
  mine.settled = checked.settled;
  if (plan.checks_sums()) mine.sums = sums_of(plan, rank, result);
}

// Sets job.right on every rank: rank 0, which has all reports, tells the others.
void agree(const RunPlan& plan, Communicator& network, JobResult& job) {
  if (network.rank() == 0 && plan.checks_sums()) {
    job.sums.emplace(plan.problem(), plan.profile());
    for (const RankReport& rank : job.ranks) job.sums->add_gathered(rank.sums);
  }
  job.right = std::ranges::all_of(job.ranks, &RankReport::right) && (!job.sums || job.sums->hold());
  job.right = text_of_first(job.right ? "right" : "wrong", kVerdictTag, network) == "right";
}

JobResult compute_job(const RunPlan& plan, JobSession& session, RunResult& result) {
  Communicator& network = session.network();
  std::optional<JobClock> clock;
  if (plan.trace_path) clock = align_clocks(network);
  JobResult job;
  RankReport mine;
  result = run_in_rounds(plan.rounds, [&](bool) {
    return plan.place.transport == TransportKind::nccl ? run_on_device(plan, session, job, mine)
                                                       : run_on_processor(plan, clock, network);
  });
  mine.stats = result.ranks.front();
  mine.seconds = result.seconds;
  mine.clock_uncertainty_s = clock ? clock->uncertainty_s : 0;
  if (plan.checks()) check_mine(plan, network.rank(), result, mine);
  // Events, of which there are many, do not travel as JSON.
  const std::vector<TraceEvent> events = std::exchange(mine.stats.events, {});
  job.ranks = gather(mine, network);
  if (plan.trace_path) job.events = gather_events(events, network);
  agree(plan, network, job);
  return job;
}

// Completes all files, but for their names: if one rank cannot write, no rank does.
std::optional<JobFailure> prepare_results(const RunPlan& plan, const RunResult& result,
                                          const JobResult& job, const JobEnd& end,
                                          Communicator& network) {
  std::optional<Error> wrong;
  try {
    if (plan.output && job.right) write_job_output(plan, result, network, end.files);
    if (end.output != nullptr) print_job(plan, job, *end.output);
  } catch (const RankError&) {  // it was not this rank
    throw;
  } catch (const Error& error) {
    wrong = error;
  }
  return share_failure(wrong, network);
}

bool gives_names(const RunPlan& plan, const JobEnd& end) {
  const bool apart = plan.output && plan.output->shards == OutputShards::apart;
  return end.output != nullptr || apart;
}

// A file of a rank that is complete, as long as it has a temporary name; without one (0) on a machine
// that does not see it.
struct Unnamed {
  std::string temporary, own;
  ino_t inode = 0;

  bool is_named() const {
    std::error_code ignored;
    return inode == 0 || (inode_of(own) == inode && !std::filesystem::exists(temporary, ignored));
  }
  static ino_t inode_of(const std::string& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
  }
};

// The files of all ranks, by the rank that is to name them.
std::vector<std::vector<Unnamed>> unnamed_files(const RunPlan& plan, const JobEnd& end,
                                                Communicator& network) {
  std::string mine;
  if (gives_names(plan, end)) {
    for (const auto& [temporary, own] : end.files.names()) mine += temporary + '\0' + own + '\0';
  }
  std::vector<std::vector<Unnamed>> all;
  for (const std::string& text : tell_all_over(network, kNamesTag)(mine)) {
    std::vector<Unnamed>& files = all.emplace_back();
    for (std::size_t at = 0; at < text.size();) {
      Unnamed file{.temporary = text.c_str() + at, .own = {}};
      at += file.temporary.size() + 1;
      file.own = text.c_str() + at;
      at += file.own.size() + 1;
      file.inode = Unnamed::inode_of(file.temporary);
      files.push_back(std::move(file));
    }
  }
  return all;
}

// The names come last: nothing that another rank does now can undo them. Each rank stays until all
// files have theirs, and puts away those of a rank that is lost.
void commit_results(const RunPlan& plan, const JobEnd& end,
                    const std::vector<std::vector<Unnamed>>& unnamed, JobSession& session) {
  if (end.output != nullptr) {
    end.output->commit();
  } else if (gives_names(plan, end)) {
    end.files.commit();
  }
  for (int rank = 0; rank < std::ssize(unnamed); ++rank) {
    if (rank == session.rank()) continue;
    const std::vector<Unnamed>& files = unnamed[static_cast<std::size_t>(rank)];
    try {
      session.outlast(rank, "see the results get their names",
                      [&] { return std::ranges::all_of(files, &Unnamed::is_named); });
    } catch (const RankError&) {
      std::error_code ignored;
      for (const Unnamed& file : files) std::filesystem::remove(file.temporary, ignored);
      throw;
    }
  }
  end.files.leave_to_others();
}

}  // namespace

int run_job_rank(const RunPlan& plan, const JobEnd& end, JobSession& session) {
  RunResult result;
  const JobResult job = compute_job(plan, session, result);
  if (const auto failure = prepare_results(plan, result, job, end, session.network())) {
    return end_job(session, *failure);
  }
  const auto unnamed = unnamed_files(plan, end, session.network());
  session.finish();
  commit_results(plan, end, unnamed, session);
  return job.right ? 0 : 1;
}

}  // namespace ringlab::cli
