// One rank of a run: agree, forward pass, backward pass.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "optimized/ring/agreement.h"
#include "optimized/ring/dense_rows.h"
#include "optimized/ring/host/execute.h"
#include "optimized/ring/host/rank_passes.h"
#include "optimized/ring/native.h"
#include "optimized/ring/native_checks.h"
#include "reference/core/checks.h"
#include "reference/core/schedule/schedule_plan.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

/// Seconds since `begin`.
double seconds_since(Recorder::Clock::time_point begin) {
  return std::chrono::duration<double>(Recorder::Clock::now() - begin).count();
}

template <class Element>
class RankRun {
 public:
  using Real = Accumulator<Element>;

  RankRun(const EngineParts& parts, const Problem& problem, const RunOptions& options,
          const NativeShard<Element>& shard, Communicator& network)
      : parts_(parts),
        problem_(problem),
        options_(options),
        network_(network),
        queries_(make_layout(options, problem.shape.q_tokens, options.q_layout)),
        keys_(make_layout(options, problem.shape.kv_tokens, options.kv_layout)),
        plan_(parts.plan ? parts.plan
                         : std::make_shared<const SchedulePlan>(
                               schedule_spec(options), need_matrix(problem.mask, queries_, keys_))),
        agreement_(
            agree(agreement_text(problem, options, shard.dout ? Pass::backward : Pass::forward),
                  network)),
        recorder_(options.trace ? Recorder::Keep::all : Recorder::Keep::last,
                  parts.clock_zero.value_or(Recorder::Clock::now())),
        step_times_(static_cast<std::size_t>(network.ranks())),
        waits_(network.ranks()),
        q_(shard.q),
        k_(shard.k),
        v_(shard.v),
        dout_(shard.dout.value_or(TensorView<const Element>{})),
        rows_{q_.view(), k_.view(), v_.view(), dout_.view()} {}

  NativeResult<Element> run(bool with_gradients) {
    const auto begin = Recorder::Clock::now();
    NativeResult<Element> result{.out = Tensor<Element>(row_extents(problem_.shape.v_dim)),
                                 .lse = Tensor<Real>(row_extents(1))};
    const std::int64_t saved = with_gradients ? row_extents(1).size() : 0;
    MeteredBuffer<Real> row_lse(meter_, saved), delta(meter_, saved);
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

 private:
  int rank() const { return network_.rank(); }

  Extents row_extents(std::int64_t channels) const {
    const Shape& s = problem_.shape;
    return {s.batch, s.q_heads, queries_.positions(rank()).size(), channels};
  }
  NativeGradients<Element> empty_gradients() const {
    const Shape& s = problem_.shape;
    const std::int64_t keys = keys_.positions(rank()).size();
    return {Tensor<Element>(row_extents(s.head_dim)), Tensor<Element>(with_tokens(s.k(), keys)),
            Tensor<Element>(with_tokens(s.v(), keys))};
  }

  /// Tokens of the largest chunk that this rank visits.
  std::int64_t most_tokens(const RankSchedule& schedule) const {
    std::int64_t most = 0;
    for (const Operation& operation : schedule.operations) {
      if (operation.action != Action::post_receive) continue;
      most = std::max(most, keys_.positions(operation.owner).size());
    }
    return most;
  }

  template <class Body>
  void run_pass(Pass pass, Body body) {
    const RankSchedule schedule =
        parts_.make_schedule ? parts_.make_schedule(schedule_spec(options_), plan_->need(), pass)
                                   .ranks[static_cast<std::size_t>(rank())]
                             : plan_->program(rank(), pass);
    Chunks<Element> chunks({.problem = problem_,
                            .wire = options_.wire,
                            .layout = keys_,
                            .rank = rank(),
                            .slots = schedule.slots,
                            .most_tokens = most_tokens(schedule)},
                           rows_.own(), meter_);
    peak_kv_bytes_ = std::max(peak_kv_bytes_, chunks.held_bytes());
    const std::int64_t products = pass == Pass::forward ? kForwardProducts : kBackwardProducts;
    body(PassContext<Element>{.problem = problem_,
                              .queries = queries_,
                              .keys = keys_,
                              .rows = rows_,
                              .kernels = parts_.kernels.template of<Element>(),
                              .tiles = {options_.tile_queries, options_.tile_keys},
                              .threads = options_.threads,
                              .rank = rank(),
                              .chunks = chunks,
                              .need = plan_->need(),
                              .work_done = parts_.work_done,
                              .products = products},
         schedule);
  }

  /// A pass with its computing noted.
  template <class PassOfRank>
  struct Noted {
    RankRun& run;
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
    Exchange exchange({.agreement = agreement_, .integrity = options_.integrity, .pass = direction},
                      network_, recorder_, step_times_, waits_);
    step_begin_ns_ = recorder_.now() - waits_.stood_ns();
    Noted<PassOfRank> noted{*this, pass, direction};
    execute(schedule, exchange, noted);
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
  /// A step ends with its computing: all that was done since the one before, but for standing
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
    for (const StepTime& time : step_times_) {
      stats.heard_step_s.push_back(time.steps > 0 ? static_cast<double>(time.mean_seconds)
                                                  : std::numeric_limits<double>::quiet_NaN());
    }
    return stats;
  }

  const EngineParts& parts_;
  const Problem& problem_;
  const RunOptions& options_;
  Communicator& network_;
  const Layout queries_, keys_;
  const std::shared_ptr<const SchedulePlan> plan_;
  const std::uint64_t agreement_;
  Recorder recorder_;
  std::vector<StepTime> step_times_;
  Waits waits_;
  std::int64_t step_begin_ns_ = 0;  // on a clock that stops while the rank stands still
  double busy_s_ = 0;
  const DenseRows<Element> q_, k_, v_, dout_;
  const RankRows<Element> rows_;
  MemoryMeter meter_;
  std::int64_t peak_kv_bytes_ = 0;
  std::vector<Visit> visits_;
};

void check_ranks(const RunOptions& options, const Communicator& network) {
  if (options.ranks == network.ranks()) return;
  throw_usage_error({.where = "ranks",
                     .expected = std::to_string(network.ranks()) + ", as many as there are",
                     .actual = std::to_string(options.ranks),
                     .hint = ""});
}

}  // namespace

template <class Element>
NativeResult<Element> run_native_rank(const Problem& problem, const RunOptions& options,
                                      const NativeShard<Element>& shard, Communicator& network,
                                      const EngineParts& parts) {
  check_ranks(options, network);
  check_dtype(dtype_of<Element>, problem.dtype);
  check_shard(problem, options, shard, network.rank());
  const std::unique_ptr<Communicator> wrapped = parts.wrap ? parts.wrap(network) : nullptr;
  RankRun<Element> run(parts, problem, options, shard, wrapped ? *wrapped : network);
  return run.run(shard.dout.has_value());
}

#define RINGLAB_NATIVE_RANK_OF(Element)                                                      \
  template NativeResult<Element> run_native_rank(const Problem&, const RunOptions&,          \
                                                 const NativeShard<Element>&, Communicator&, \
                                                 const EngineParts&)
RINGLAB_NATIVE_RANK_OF(double);
RINGLAB_NATIVE_RANK_OF(float);
RINGLAB_NATIVE_RANK_OF(Half);
RINGLAB_NATIVE_RANK_OF(BFloat16);
#undef RINGLAB_NATIVE_RANK_OF

}  // namespace ringlab::ring
