#include "stages/common/run_ranks.h"

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "optimized/transport/call_record.h"
#include "optimized/transport/run_network.h"
#include "reference/core/checks.h"
#include "reference/core/options/option_table.h"
#include "reference/core/shards.h"
#include "reference/core/unwritten.h"
#include "stages/common/call_events.h"
#include "stages/common/counted_rank.h"
#include "stages/common/device_list.h"

namespace ringlab::stages {
namespace {

/// The tensors that one rank holds, and the log of its work.
template <class Element>
struct RankData {
  Tensor<Element> q, k, v, out;
  Tensor<Accumulator<Element>> lse;
  Positions out_positions;
  Tensor<Element> dout, dq, dk, dv;  // of no tokens unless gradients are wanted
  MemoryMeter memory;
  WorkLog work;
  MessageCounts counts;
  double seconds = 0;
};

void check_run(const AttentionInput& input, const RunOptions& options) {
  check_problem(input.problem);
  refuse_modifiers(input.problem.modifiers, "a stage");
  check_extents("q", input.q.extents, input.problem.shape.q());
  check_extents("k", input.k.extents, input.problem.shape.k());
  check_extents("v", input.v.extents, input.problem.shape.v());
  if (input.dout) check_extents("dout", input.dout->extents, input.problem.shape.out());
  check_limits(options);
  require_device(options.device);
}

template <class Element>
RankData<Element> make_rank(const AttentionInput& input, const Positions& queries,
                            const Positions& keys) {
  using Real = Accumulator<Element>;
  const Shape& s = input.problem.shape;
  return {
      .q = shard_of<Element>(input.q, queries),
      .k = shard_of<Element>(input.k, keys),
      .v = shard_of<Element>(input.v, keys),
      .out = Tensor<Element>({s.batch, s.q_heads, queries.size(), s.v_dim},
                             static_cast<Element>(kUnwritten)),
      .lse = Tensor<Real>({s.batch, s.q_heads, queries.size(), 1}, static_cast<Real>(kUnwritten)),
      .out_positions = queries,
      .dout = {},
      .dq = {},
      .dk = {},
      .dv = {},
      .memory = {},
      .work = {},
      .counts = {},
      .seconds = 0};
}

/// Shards dout and makes room for the gradients.
template <class Element>
void want_gradients(const TensorView<const double>& dout, const Positions& queries,
                    RankData<Element>& rank) {
  const auto unwritten = static_cast<Element>(kUnwritten);
  rank.dout = shard_of<Element>(dout, queries);
  rank.dq = Tensor<Element>(rank.q.extents(), unwritten);
  rank.dk = Tensor<Element>(rank.k.extents(), unwritten);
  rank.dv = Tensor<Element>(rank.v.extents(), unwritten);
}

template <class Element>
AttentionGradients collect_gradients(const Shape& shape, const Layout& q_layout,
                                     const Layout& kv_layout,
                                     const std::vector<RankData<Element>>& ranks) {
  AttentionGradients gradients{Tensor<double>(shape.q()), Tensor<double>(shape.k()),
                               Tensor<double>(shape.v())};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Positions& keys = kv_layout.positions(static_cast<int>(i));
    unshard(ranks[i].dq, q_layout.positions(static_cast<int>(i)), gradients.dq);
    unshard(ranks[i].dk, keys, gradients.dk);
    unshard(ranks[i].dv, keys, gradients.dv);
  }
  return gradients;
}

template <class Element>
RankStats stats_of(const RankData<Element>& rank, const Traffic& traffic) {
  return {.sent_bytes = traffic.sent_bytes,
          .sent_messages = traffic.sent_messages,
          .received_bytes = traffic.received_bytes,
          .received_messages = traffic.received_messages,
          .peak_bytes = rank.memory.peak_bytes(),
          .peak_kv_bytes = rank.work.peak_kv_bytes(),
          .exchanges = rank.counts.exchanges,
          .node_messages = rank.counts.node_messages,
          .visits = rank.work.visits()};
}

/// Every result row has a token of its own to go to.
void check_rows(const Positions& positions, std::int64_t rows, std::int64_t tokens) {
  check_range("positions of the result rows", positions.size(), rows, rows);
  for (const std::int64_t token : positions.to_list()) {
    check_range("position of a result row", token, 0, tokens - 1);
  }
}

/// Receives that were posted, and never waited for or never sent to.
template <class Element>
std::int64_t receives_left_open(const std::vector<RankData<Element>>& ranks,
                                const NetworkSummary& network) {
  std::int64_t left = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    left += ranks[i].counts.posted_receives - network.traffic[i].received_messages;
  }
  return left;
}

template <class Element>
RunResult collect(const Shape& shape, const std::vector<RankData<Element>>& ranks,
                  const NetworkSummary& network) {
  RunResult result{
      .output = {Tensor<double>(shape.out(), kUnwritten), Tensor<double>(shape.lse(), kUnwritten)},
      .ranks = {},
      .leftover_messages = std::max(network.leftover_messages, receives_left_open(ranks, network)),
      .seconds = 0};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Positions& positions = ranks[i].out_positions;
    check_rows(positions, ranks[i].out.extents().tokens, shape.q_tokens);
    unshard(ranks[i].out, positions, result.output.out);
    unshard(ranks[i].lse, positions, result.output.lse);
    result.ranks.push_back(stats_of(ranks[i], network.traffic[i]));
    result.seconds = std::max(result.seconds, ranks[i].seconds);
  }
  return result;
}

/// A run before and after its bodies: shards and layouts, results gathered.
template <class Element>
class Run {
 public:
  Run(const AttentionInput& input, const RunOptions& options)
      : input_(input),
        options_(options),
        q_layout_(make_layout(options, input.problem.shape.q_tokens, options.q_layout)),
        kv_layout_(make_layout(options, input.problem.shape.kv_tokens, options.kv_layout)) {
    ranks_.reserve(static_cast<std::size_t>(options.ranks));
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Positions& queries = q_layout_.positions(rank);
      ranks_.push_back(make_rank<Element>(input, queries, kv_layout_.positions(rank)));
      if (input.dout) want_gradients(*input.dout, queries, ranks_.back());
    }
  }

  RankData<Element>& data(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  /// The share of the communicator's rank.
  RankProblem<Element> share(Communicator& communicator) {
    RankData<Element>& mine = data(communicator.rank());
    return {.problem = input_.problem,
            .options = options_,
            .q_layout = q_layout_,
            .kv_layout = kv_layout_,
            .q = std::as_const(mine.q).view(),
            .k = std::as_const(mine.k).view(),
            .v = std::as_const(mine.v).view(),
            .out = mine.out.view(),
            .lse = mine.lse.view(),
            .out_positions = mine.out_positions,
            .network = communicator,
            .memory = mine.memory,
            .work = mine.work,
            .wants_gradients = input_.dout.has_value(),
            .dout = std::as_const(mine.dout).view(),
            .dq = mine.dq.view(),
            .dk = mine.dk.view(),
            .dv = mine.dv.view()};
  }
  RunResult result(const NetworkSummary& network) const {
    const Shape& shape = input_.problem.shape;
    RunResult result = collect(shape, ranks_, network);
    if (input_.dout) result.gradients = collect_gradients(shape, q_layout_, kv_layout_, ranks_);
    return result;
  }

 private:
  const AttentionInput& input_;
  const RunOptions& options_;
  Layout q_layout_, kv_layout_;
  std::vector<RankData<Element>> ranks_;
};

/// Seconds that `work` takes.
template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A rank's number where nothing is posted: what travels is copied between devices.
class RankNumber : public Communicator {
 public:
  RankNumber(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Request post_send(int, int, std::span<const std::byte>) override { no_messages(); }
  Request post_receive(int, int, std::span<std::byte>) override { no_messages(); }
  void wait(Request) override { no_messages(); }
  const Traffic& traffic() const override { return traffic_; }

 private:
  [[noreturn]] static void no_messages() {
    throw std::logic_error("a message in a run whose ranks are driven by one thread");
  }
  int rank_, ranks_;
  Traffic traffic_;
};

/// Notes blocks of work as they turn up in the log of a rank.
class RecordedRank : public RecordingCommunicator {
 public:
  RecordedRank(Communicator& network, RankCalls& calls, const WorkLog& work, Clock::time_point zero)
      : RecordingCommunicator(network, calls, zero), work_(work), begin_ns_(now()) {}
  void note_end() {
    note_computed();
    calls().ended = true;
  }

 protected:
  void note_computed() override {
    for (; noted_ < work_.blocks().size(); ++noted_) {
      const WorkLog::Block& block = work_.blocks()[noted_];
      const bool is_first = calls().calls.empty();
      calls().calls.push_back({.kind = CallKind::compute,
                               .owner = block.owner,
                               .hop = block.hop,
                               .backward = block.backward,
                               .begin_ns = is_first ? begin_ns_ : calls().calls.back().end_ns,
                               .end_ns = ns_at(block.end)});
    }
    backward_ = work_.backward();
  }

 private:
  const WorkLog& work_;
  std::int64_t begin_ns_;
  std::size_t noted_ = 0;
};

}  // namespace

template <class Element>
RunResult run_ranks_of(const AttentionInput& input, const RunOptions& options,
                       const AttentionBody<Element>& body, std::string_view stage) {
  check_run(input, options);
  Run<Element> run(input, options);
  std::vector<RankCalls>* record = RecordedRun::begin(options.ranks);
  std::vector<RankCalls> traced;
  if (!record && options.trace) {
    traced.resize(static_cast<std::size_t>(options.ranks));
    record = &traced;
  }
  const auto zero = RecordedRank::Clock::now();
  const auto run_rank = [&](Communicator& communicator) {
    CountedRank counted(communicator, options.node_ranks, run.data(communicator.rank()).counts);
    RankProblem<Element> share = run.share(counted);
    share.stage = stage;
    run.data(communicator.rank()).seconds = seconds_of([&] { body(share); });
  };
  const NetworkSummary network = run_network(options, [&](Communicator& communicator) {
    if (!record) return run_rank(communicator);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    RecordedRank recorded(communicator, (*record)[rank], run.data(communicator.rank()).work, zero);
    run_rank(recorded);
    recorded.note_end();
  });
  RunResult result = run.result(network);
  if (!options.trace) return result;
  std::vector<std::vector<TraceEvent>> events = events_of(*record);
  for (std::size_t rank = 0; rank < events.size(); ++rank) {
    result.ranks[rank].events = std::move(events[rank]);
  }
  return result;
}

template <class Element>
RunResult run_together_of(const AttentionInput& input, const RunOptions& options,
                          const TogetherBody<Element>& body) {
  check_run(input, options);
  Run<Element> run(input, options);
  std::vector<RankNumber> numbers;
  for (int rank = 0; rank < options.ranks; ++rank) numbers.emplace_back(rank, options.ranks);
  std::vector<RankProblem<Element>> shares;
  for (RankNumber& number : numbers) shares.push_back(run.share(number));
  NetworkSummary moved{.traffic = std::vector<Traffic>(shares.size())};
  run.data(0).seconds = seconds_of([&] { body(shares, moved.traffic); });
  return run.result(moved);
}

template RunResult run_ranks_of(const AttentionInput&, const RunOptions&,
                                const AttentionBody<double>&, std::string_view);
template RunResult run_ranks_of(const AttentionInput&, const RunOptions&,
                                const AttentionBody<float>&, std::string_view);
template RunResult run_ranks_of(const AttentionInput&, const RunOptions&,
                                const AttentionBody<Half>&, std::string_view);
template RunResult run_ranks_of(const AttentionInput&, const RunOptions&,
                                const AttentionBody<BFloat16>&, std::string_view);
template RunResult run_together_of(const AttentionInput&, const RunOptions&,
                                   const TogetherBody<double>&);
template RunResult run_together_of(const AttentionInput&, const RunOptions&,
                                   const TogetherBody<float>&);
template RunResult run_together_of(const AttentionInput&, const RunOptions&,
                                   const TogetherBody<Half>&);
template RunResult run_together_of(const AttentionInput&, const RunOptions&,
                                   const TogetherBody<BFloat16>&);

}  // namespace ringlab::stages
