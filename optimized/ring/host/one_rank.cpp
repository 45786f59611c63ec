// One rank of a run: its rows, agreement, forward pass, backward pass.
#include "optimized/ring/host/one_rank.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "optimized/cpu/vectors.h"
#include "optimized/ring/agreement.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/dense_rows.h"
#include "optimized/ring/host/execute.h"
#include "optimized/ring/host/rank_passes.h"
#include "reference/core/checks.h"
#include "reference/core/schedule/schedule_plan.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

/// Seconds since `begin`.
double seconds_since(Recorder::Clock::time_point begin) {
  return std::chrono::duration<double>(Recorder::Clock::now() - begin).count();
}

/// A rank for one run. Members are made in the order of their declaration, and that order is part
/// of the protocol: rows and schedule come before the agreement, so that errors of this rank's
/// input are thrown before it sends anything.
template <class Element>
class HostRank {
 public:
  using Real = Accumulator<Element>;

  HostRank(const CheckedRun<Element>& run, Communicator& network)
      : run_(run),
        network_(network),
        queries_(make_layout(options(), shape().q_tokens, options().q_layout)),
        keys_(make_layout(options(), shape().kv_tokens, options().kv_layout)),
        // Rows with strides are copied once, here: kernels and sends want them dense.
        rows_(dense_rows(run.ends.source(tokens()))),
        plan_(run.parts.plan ? run.parts.plan : own_plan()),
        agreement_(agree(facts(), network)),
        // Without a trace the last 64 events are kept, because errors carry them.
        recorder_(options().trace ? Recorder::Keep::all : Recorder::Keep::last,
                  run.parts.clock_zero.value_or(Recorder::Clock::now())),
        step_times_(static_cast<std::size_t>(network.ranks())),
        waits_(network.ranks()) {}

  // Results go to the sink when both passes are done; until then no other code sees any result.
  RunSummary run() {
    RankResult<Element> result = both_passes();
    RunSummary summary{.ranks = {result.stats}, .seconds = result.seconds};
    run_.ends.sink(tokens(), std::move(result));
    return summary;
  }

 private:
  const RunOptions& options() const { return run_.options; }
  const Shape& shape() const { return run_.problem.shape; }
  int rank() const { return network_.rank(); }
  RankTokens tokens() const {
    return {rank(), queries_.positions(rank()), keys_.positions(rank())};
  }
  Pass last_pass() const { return rows_.dout ? Pass::backward : Pass::forward; }
  /// The facts of the run, and the vectors in use: other vectors may give other bits.
  Facts facts() const {
    Facts facts = facts_of(run_.problem, options(), last_pass());
    facts.push_back({"vectors", cpu::vectors_in_use()});
    return facts;
  }
  std::shared_ptr<const SchedulePlan> own_plan() const {
    return std::make_shared<const SchedulePlan>(schedule_spec(options()),
                                                need_matrix(run_.problem.mask, queries_, keys_));
  }

  RankResult<Element> both_passes() {
    // Starts after the agreement: seconds are those of the passes, without
    // waiting for ranks that start late.
    const auto begin = Recorder::Clock::now();
    const bool with_gradients = rows_.dout.has_value();
    // out is (batch, q_heads, rows, v_dim), lse one number per row.
    RankResult<Element> result{.out = Tensor<Element>(row_extents(shape().v_dim)),
                               .lse = Tensor<Real>(row_extents(1))};
    // The backward pass needs lse and delta of the forward pass, one number
    // per row each, in the accumulator's type.
    const std::int64_t saved = with_gradients ? row_extents(1).size() : 0;
    MeteredBuffer<Real> row_lse(meter_, saved), delta(meter_, saved);
    // State and slots of a pass are freed before those of the next one are made: the peak is the
    // larger of the two, not their sum (engine_costs).
    run_pass(Pass::forward, [&](const PassContext<Element>& context, const RankSchedule& schedule) {
      ForwardPass<Element> pass(context, meter_);
      execute_with(pass, schedule, Pass::forward);
      pass.finish(result.out, result.lse, row_lse.data(), with_gradients ? delta.data() : nullptr);
    });
    if (with_gradients) {
      result.gradients = empty_gradients();
      run_pass(Pass::backward,
               [&](const PassContext<Element>& context, const RankSchedule& schedule) {
                 BackwardPass<Element> pass(context, row_lse.data(), delta.data(), meter_);
                 pass.prepare(schedule, most_tokens(schedule));
                 execute_with(pass, schedule, Pass::backward);
                 pass.finish(*result.gradients);
               });
    }
    result.seconds = seconds_since(begin);
    result.stats = stats();
    return result;
  }

  Extents row_extents(std::int64_t channels) const {
    const Shape& s = shape();
    return {s.batch, s.q_heads, queries_.positions(rank()).size(), channels};
  }
  RankGradients<Element> empty_gradients() const {
    const Shape& s = shape();
    const std::int64_t keys = keys_.positions(rank()).size();
    return {Tensor<Element>(row_extents(s.head_dim)), Tensor<Element>(with_tokens(s.k(), keys)),
            Tensor<Element>(with_tokens(s.v(), keys))};
  }

  /// Tokens of the largest chunk that this rank visits.
  std::int64_t most_tokens(const RankSchedule& schedule) const {
    std::int64_t most = 0;
    for (const Operation& operation : schedule.operations) {
      if (operation.verb != Verb::post_receive || concerns_gradients(operation)) continue;
      most = std::max(most, keys_.positions(operation.owner).size());
    }
    return most;
  }

  template <class Body>
  void run_pass(Pass pass, Body body) {
    // Tests bring schedules of their own; else each rank builds its part of the common plan.
    const RankSchedule schedule =
        run_.parts.make_schedule
            ? run_.parts.make_schedule(schedule_spec(options()), plan_->need(), pass)
                  .ranks[static_cast<std::size_t>(rank())]
            : plan_->program(rank(), pass);
    Chunks<Element> chunks({.problem = run_.problem,
                            .wire = options().wire,
                            .layout = keys_,
                            .rank = rank(),
                            .slots = schedule.slots,
                            .most_tokens = most_tokens(schedule)},
                           {rows_.k, rows_.v}, meter_);
    // Slots are as many and as long as this pass's schedule wants, so the
    // peak is taken in each pass.
    peak_kv_bytes_ = std::max(peak_kv_bytes_, chunks.held_bytes());
    const std::int64_t products = pass == Pass::forward ? kForwardProducts : kBackwardProducts;
    body(PassContext<Element>{.problem = run_.problem,
                              .queries = queries_,
                              .keys = keys_,
                              .rows = rows_,
                              .kernels = run_.parts.kernels.template of<Element>(),
                              .tiles = {options().tile_queries, options().tile_keys},
                              .threads = options().threads,
                              .rank = rank(),
                              .chunks = chunks,
                              .need = plan_->need(),
                              .work_done = &run_.parts.work_done,
                              .products = products},
         schedule);
  }

  /// A pass, with events for its computing.
  template <class PassOfRank>
  struct Noted {
    HostRank& run;
    PassOfRank& pass;
    Pass direction;
    TensorPair chunk_bytes(const Operation& operation) { return pass.chunk_bytes(operation); }
    TensorPair gradient_bytes(const Operation& operation) { return pass.gradient_bytes(operation); }
    void compute(const Operation& operation) {
      const std::int64_t begin = run.recorder_.now();
      pass.compute(operation);
      run.note(TraceKind::compute, operation, direction, begin);
      run.note_step(operation, direction);
    }
    void add_gradient(const Operation& operation) {
      const std::int64_t begin = run.recorder_.now();
      pass.add_gradient(operation);
      run.note(TraceKind::add, operation, direction, begin);
    }
  };

  template <class PassOfRank>
  void execute_with(PassOfRank& pass, const RankSchedule& schedule, Pass direction) {
    Exchange exchange(
        {.agreement = agreement_, .integrity = options().integrity, .pass = direction}, network_,
        recorder_, step_times_, waits_);
    // The first step begins with the first post of the pass.
    step_begin_ns_ = recorder_.now() - waits_.stood_ns();
    Noted<PassOfRank> noted{*this, pass, direction};
    // After an error no transport may touch buffers that are about to be freed.
    let_go_on_error(network_, [&] { execute(schedule, exchange, noted); });
  }

  void note(TraceKind kind, const Operation& operation, Pass direction, std::int64_t begin) {
    const bool gradient = kind == TraceKind::add;
    recorder_.add({.kind = kind,
                   .rank = rank(),
                   .step = operation.step,
                   .owner = operation.owner,
                   .peer = kNobody,
                   .slot = gradient ? operation.gradient : operation.slot,
                   .gradient = gradient,
                   .pass = direction,
                   .bytes = 0,
                   .begin_ns = begin,
                   .end_ns = recorder_.now()});
  }
  /// Ends a step with its computing: counts all time since the last step but that of standing
  /// still.
  void note_step(const Operation& operation, Pass direction) {
    const std::int64_t own_clock_ns = recorder_.now() - waits_.stood_ns();
    busy_s_ += static_cast<double>(own_clock_ns - step_begin_ns_) * 1e-9;
    step_begin_ns_ = own_clock_ns;
    StepTime& mine = step_times_[static_cast<std::size_t>(rank())];
    ++mine.steps;
    mine.mean_seconds = static_cast<float>(busy_s_ / mine.steps);
    if (direction == Pass::backward) return;
    visits_.push_back(
        {operation.owner, operation.step, plan_->need().pairs(rank(), operation.owner)});
  }

  RankStats stats() const {
    const Traffic& traffic = network_.traffic();
    RankStats stats{.sent_bytes = traffic.sent_bytes,
                    .sent_messages = traffic.sent_messages,
                    .received_bytes = traffic.received_bytes,
                    .received_messages = traffic.received_messages,
                    .peak_bytes = meter_.peak_bytes(),
                    .peak_kv_bytes = peak_kv_bytes_,
                    .visits = visits_,
                    .heard_step_s = {},
                    .busy_s = busy_s_,
                    .links = waits_.links(),
                    .events = recorder_.all()};
    // NaN for a rank of which no time has come round: 0 would be a step of no time.
    for (const StepTime& time : step_times_) {
      stats.heard_step_s.push_back(time.steps > 0 ? static_cast<double>(time.mean_seconds)
                                                  : std::numeric_limits<double>::quiet_NaN());
    }
    return stats;
  }

  const CheckedRun<Element>& run_;
  Communicator& network_;
  const Layout queries_, keys_;
  const RankRows<Element> rows_;  // dense
  const std::shared_ptr<const SchedulePlan> plan_;
  const std::uint64_t agreement_;
  Recorder recorder_;
  std::vector<StepTime> step_times_;
  Waits waits_;
  std::int64_t step_begin_ns_ = 0;  // on a clock that stops while the rank stands still
  double busy_s_ = 0;
  MemoryMeter meter_;
  std::int64_t peak_kv_bytes_ = 0;
  std::vector<Visit> visits_;
};

}  // namespace

template <class Element>
RunSummary run_rank(const CheckedRun<Element>& run, Communicator& network) {
  // The wrapper plants faults or records calls, around all of the engine's calls.
  const std::unique_ptr<Communicator> wrapped = run.parts.wrap ? run.parts.wrap(network) : nullptr;
  return HostRank<Element>(run, wrapped ? *wrapped : network).run();
}
template RunSummary run_rank(const CheckedRun<double>&, Communicator&);
template RunSummary run_rank(const CheckedRun<float>&, Communicator&);
template RunSummary run_rank(const CheckedRun<Half>&, Communicator&);
template RunSummary run_rank(const CheckedRun<BFloat16>&, Communicator&);

void OneRank::check(const Problem&, const RunOptions& options) const {
  if (options.ranks == network_.ranks()) return;
  throw_usage_error({.where = "ranks",
                     .expected = std::to_string(network_.ranks()) + ", as many as there are",
                     .actual = std::to_string(options.ranks)});
}

RunSummary OneRank::run(const AnyRun& run) const {
  return std::visit([&](const auto& of_type) { return run_rank(of_type, network_); }, run);
}

}  // namespace ringlab::ring
