// The engine on ranks inside this process: shard, run, put together.
#include "optimized/ring/engine.h"

#include <algorithm>
#include <new>
#include <string>

#include "optimized/transport/run_network.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"

namespace ringlab::ring {
namespace {

void check_run(const AttentionInput& input, const RunOptions& options) {
  check_problem(input.problem);
  check_extents("q", input.q.extents, input.problem.shape.q());
  check_extents("k", input.k.extents, input.problem.shape.k());
  check_extents("v", input.v.extents, input.problem.shape.v());
  if (input.dout) check_extents("do", input.dout->extents, input.problem.shape.out());
  check_range("ranks", options.ranks, 1, 4096);
  check_range("slots", options.slots, 1, 4096);
  check_range("tile-keys", options.tile_keys, 1, 1 << 20);
  check_range("tile-queries", options.tile_queries, 1, 1 << 20);
  check_range("threads", options.threads, 1, 4096);
  if (options.device == DeviceKind::cpu) return;
  throw_environment_error({.where = "device",
                           .expected = "cpu, the only device the ring engine runs on so far",
                           .actual = "cuda",
                           .hint = ""});
}

/// This rank's rows of the whole input.
struct Shard {
  Tensor<double> q, k, v;
  std::optional<Tensor<double>> dout;

  Shard(const AttentionInput& input, const Positions& queries, const Positions& keys)
      : q(shard_of<double>(input.q, queries)),
        k(shard_of<double>(input.k, keys)),
        v(shard_of<double>(input.v, keys)) {
    if (input.dout) dout = shard_of<double>(*input.dout, queries);
  }
  ShardInput input() const {
    ShardInput shard{.q = q.view(), .k = k.view(), .v = v.view()};
    if (dout) shard.dout = dout->view();
    return shard;
  }
};

RunResult empty_result(const AttentionInput& input, int ranks) {
  const Shape& shape = input.problem.shape;
  RunResult result{.output = {Tensor<double>(shape.out()), Tensor<double>(shape.lse())},
                   .ranks = std::vector<RankStats>(static_cast<std::size_t>(ranks)),
                   .leftover_messages = 0,
                   .seconds = 0};
  if (input.dout) {
    result.gradients = {Tensor<double>(shape.q()), Tensor<double>(shape.k()),
                        Tensor<double>(shape.v())};
  }
  return result;
}

/// Ranks write different tokens, so they need not wait for one another.
void put_in_place(ShardResult&& shard, const Positions& queries, const Positions& keys, int rank,
                  RunResult& result) {
  unshard(shard.output.out, queries, result.output.out);
  unshard(shard.output.lse, queries, result.output.lse);
  if (shard.gradients) {
    unshard(shard.gradients->dq, queries, result.gradients->dq);
    unshard(shard.gradients->dk, keys, result.gradients->dk);
    unshard(shard.gradients->dv, keys, result.gradients->dv);
  }
  result.ranks[static_cast<std::size_t>(rank)] = std::move(shard.stats);
}

RunResult run_on_network(const EngineParts& parts, const AttentionInput& input,
                         const RunOptions& options) {
  check_run(input, options);
  const Layout queries = make_layout(options, input.problem.shape.q_tokens, options.q_layout);
  const Layout keys = make_layout(options, input.problem.shape.kv_tokens, options.kv_layout);
  EngineParts shared = parts;
  if (!shared.clock_zero) shared.clock_zero = std::chrono::steady_clock::now();
  if (!shared.plan) {
    shared.plan = std::make_shared<const SchedulePlan>(
        schedule_spec(options), need_matrix(input.problem.mask, queries, keys));
  }
  RunResult result = empty_result(input, options.ranks);
  std::vector<double> seconds(static_cast<std::size_t>(options.ranks));
  const NetworkSummary network = run_network(options, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const Shard shard(input, queries.positions(rank), keys.positions(rank));
    ShardResult mine =
        run_engine_rank_with(shared, input.problem, options, shard.input(), communicator);
    seconds[static_cast<std::size_t>(rank)] = mine.seconds;
    put_in_place(std::move(mine), queries.positions(rank), keys.positions(rank), rank, result);
  });
  result.leftover_messages = network.leftover_messages;
  result.seconds = std::ranges::max(seconds);
  return result;
}

}  // namespace

RunResult run_engine_with(const EngineParts& parts, const AttentionInput& input,
                          const RunOptions& options) {
  try {
    return run_on_network(parts, input, options);
  } catch (const std::bad_alloc&) {  // outside the ranks: theirs have become errors already
    throw_environment_error({.where = "ring engine",
                             .expected = "memory for the outputs and the ranks",
                             .actual = "out of memory",
                             .hint = "Use fewer tokens, heads or ranks"});
  }
}

RunResult run_engine(const AttentionInput& input, const RunOptions& options) {
  return run_engine_with({}, input, options);
}

}  // namespace ringlab::ring
