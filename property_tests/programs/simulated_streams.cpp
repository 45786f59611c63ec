#include "property_tests/programs/simulated_streams.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "optimized/ring/dense_rows.h"
#include "optimized/ring/host/rank_passes.h"
#include "property_tests/programs/stream_laws.h"
#include "reference/core/small_float.h"

namespace ringlab::ring {
namespace {

/// The rows, saved numbers and results of one rank through both passes.
template <class Element>
struct SimulatedRank {
  using Real = Accumulator<Element>;

  SimulatedRank(const StreamSetting& setting, int number, const RankRows<Element>& given)
      : rank(number),
        rows(dense_rows(given)),
        row_lse(meter, rows.dout ? row_extents(setting, 1).size() : 0),
        delta(meter, row_lse.size()) {
    const Shape& s = setting.problem.shape;
    result.out = Tensor<Element>(row_extents(setting, s.v_dim));
    result.lse = Tensor<Real>(row_extents(setting, 1));
    if (!rows.dout) return;
    const std::int64_t keys = setting.keys.positions(rank).size();
    result.gradients = {Tensor<Element>(row_extents(setting, s.head_dim)),
                        Tensor<Element>(with_tokens(s.k(), keys)),
                        Tensor<Element>(with_tokens(s.v(), keys))};
  }
  Extents row_extents(const StreamSetting& setting, std::int64_t channels) const {
    const Shape& s = setting.problem.shape;
    return {s.batch, s.q_heads, setting.queries.positions(rank).size(), channels};
  }

  const int rank;
  const RankRows<Element> rows;  // dense
  MemoryMeter meter;
  MeteredBuffer<Real> row_lse, delta;
  RankResult<Element> result;
};

/// A pass of one rank, with its slots.
template <class Element, class PassOfRank>
struct RankInPass {
  template <class... Saved>
  RankInPass(const StreamSetting& setting, const StreamProgram& program,
             SimulatedRank<Element>& data, Saved... saved)
      : chunks({.problem = setting.problem,
                .wire = setting.options.wire,
                .layout = setting.keys,
                .rank = data.rank,
                .slots = program.ranks[static_cast<std::size_t>(data.rank)].slots,
                .most_tokens = most_tokens(program, setting.keys, data.rank)},
               {data.rows.k, data.rows.v}, data.meter),
        kernels{},
        context{.problem = setting.problem,
                .queries = setting.queries,
                .keys = setting.keys,
                .rows = data.rows,
                .kernels = kernels,
                .tiles = {setting.options.tile_queries, setting.options.tile_keys},
                .threads = setting.options.threads,
                .rank = data.rank,
                .chunks = chunks,
                .need = setting.need},
        pass(context, saved..., data.meter) {}

  Chunks<Element> chunks;
  const cpu::KernelPair<Element> kernels;
  PassContext<Element> context;
  PassOfRank pass;
};

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  std::copy_n(from.begin(), std::min(from.size(), to.size()), to.begin());
}

/// All ranks in one pass, as a machine that executes its stream program.
template <class Element, class PassOfRank>
class Devices final : public StreamMachine {
 public:
  using Rank = RankInPass<Element, PassOfRank>;
  explicit Devices(std::vector<std::unique_ptr<Rank>> ranks, std::vector<Traffic>& traffic)
      : ranks_(std::move(ranks)), traffic_(traffic) {}

  void begin_copy(const StreamOperation& copy) override {
    const TensorPair from = held(copy, copy.from), to = held(copy, copy.to);
    std::ranges::fill(to.first, kUnwritten);
    std::ranges::fill(to.second, kUnwritten);
    first_half_[&copy].assign(from.first.begin(), from.first.end());
  }
  void end_copy(const StreamOperation& copy) override {
    const TensorPair from = held(copy, copy.from), to = held(copy, copy.to);
    copy_bytes(first_half_.extract(&copy).mapped(), to.first);
    copy_bytes(from.second, to.second);
    const auto bytes = static_cast<std::int64_t>(to.first.size() + to.second.size());
    Traffic& sent = traffic_[static_cast<std::size_t>(copy.from.rank)];
    Traffic& received = traffic_[static_cast<std::size_t>(copy.to.rank)];
    sent.sent_bytes += bytes;
    ++sent.sent_messages;
    received.received_bytes += bytes;
    ++received.received_messages;
  }
  void attend(const StreamOperation& operation) override {
    of(operation.rank).compute(programs::computing_of(operation));
  }
  void add_gradient(const StreamOperation& operation) override {
    of(operation.rank).add_gradient(programs::computing_of(operation));
  }
  PassOfRank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]->pass; }

 private:
  static constexpr std::byte kUnwritten{0xff};  // NaN in every format

  TensorPair held(const StreamOperation& copy, SlotPlace place) {
    const Operation operation{.owner = copy.owner, .slot = place.slot, .gradient = place.slot};
    PassOfRank& pass = of(place.rank);
    return copy.payload == Payload::chunk ? pass.chunk_bytes(operation)
                                          : pass.gradient_bytes(operation);
  }

  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Traffic>& traffic_;
  std::map<const StreamOperation*, std::vector<std::byte>> first_half_;
};

template <class Element>
class SimulatedRun {
 public:
  SimulatedRun(const Problem& problem, const RunOptions& options, const SimulatedStreams& streams)
      : setting_(stream_setting(problem, options)),
        streams_(streams),
        traffic_(static_cast<std::size_t>(options.ranks)) {}

  RunSummary run(const Ends<Element>& ends) {
    for (int rank = 0; rank < setting_.options.ranks; ++rank) {
      ranks_.push_back(std::make_unique<SimulatedRank<Element>>(
          setting_, rank, ends.source(setting_.tokens(rank))));
    }
    const auto begin = std::chrono::steady_clock::now();
    forward();
    if (ranks_.front()->rows.dout) backward();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return hand_over(ends, seconds);
  }

 private:
  StreamProgram program_of(Pass pass) const {
    return stream_program_of(setting_, pass, streams_.copy_by, streams_.edit);
  }

  void execute(const StreamProgram& program, std::uint64_t seed, StreamMachine& machine) const {
    if (streams_.execute) return streams_.execute(program, seed, machine);
    execute_in_random_order(program, seed, machine);
  }

  void forward() {
    using Forward = ForwardPass<Element>;
    const StreamProgram program = program_of(Pass::forward);
    std::vector<std::unique_ptr<RankInPass<Element, Forward>>> ranks;
    for (const auto& data : ranks_) {
      ranks.push_back(std::make_unique<RankInPass<Element, Forward>>(setting_, program, *data));
    }
    Devices<Element, Forward> devices(std::move(ranks), traffic_);
    execute(program, streams_.seed, devices);
    for (const auto& data : ranks_) {
      devices.of(data->rank)
          .finish(data->result.out, data->result.lse, data->row_lse.data(),
                  data->rows.dout ? data->delta.data() : nullptr);
    }
  }

  void backward() {
    using Backward = BackwardPass<Element>;
    const StreamProgram program = program_of(Pass::backward);
    std::vector<std::unique_ptr<RankInPass<Element, Backward>>> ranks;
    for (const auto& data : ranks_) {
      ranks.push_back(std::make_unique<RankInPass<Element, Backward>>(
          setting_, program, *data, std::as_const(data->row_lse).data(),
          std::as_const(data->delta).data()));
      const std::int64_t most = most_tokens(program, setting_.keys, data->rank);
      const StreamRoom& room = program.ranks[static_cast<std::size_t>(data->rank)];
      ranks.back()->pass.prepare({.operations = {}, .gradient_slots = room.gradient_slots}, most);
    }
    Devices<Element, Backward> devices(std::move(ranks), traffic_);
    execute(program, streams_.seed + 1, devices);
    for (const auto& data : ranks_) devices.of(data->rank).finish(*data->result.gradients);
  }

  RunSummary hand_over(const Ends<Element>& ends, double seconds) {
    RunSummary summary{.ranks = {}, .leftover_messages = 0, .seconds = seconds};
    for (const auto& data : ranks_) {
      const Traffic& traffic = traffic_[static_cast<std::size_t>(data->rank)];
      RankResult<Element>& result = data->result;
      result.seconds = seconds;
      result.stats = {.sent_bytes = traffic.sent_bytes,
                      .sent_messages = traffic.sent_messages,
                      .received_bytes = traffic.received_bytes,
                      .received_messages = traffic.received_messages,
                      .peak_bytes = data->meter.peak_bytes()};
      summary.ranks.push_back(result.stats);
      ends.sink(setting_.tokens(data->rank), std::move(result));
    }
    return summary;
  }

  const StreamSetting setting_;
  const SimulatedStreams& streams_;
  std::vector<Traffic> traffic_;
  std::vector<std::unique_ptr<SimulatedRank<Element>>> ranks_;
};

}  // namespace

RunSummary OnSimulatedStreams::run(const AnyRun& run) const {
  return std::visit(
      [&]<class Element>(const CheckedRun<Element>& of_type) {
        return SimulatedRun<Element>(of_type.problem, of_type.options, streams_).run(of_type.ends);
      },
      run);
}

}  // namespace ringlab::ring
