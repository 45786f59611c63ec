// Bytes and messages that one rank of the engine moves, and memory that it holds, as closed forms.
#include <algorithm>
#include <utility>

#include "optimized/ring/agreement.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/host/chunks.h"
#include "optimized/ring/host/message.h"
#include "reference/core/schedule/schedule_costs.h"

namespace ringlab::ring {
namespace {

constexpr std::int64_t kMessagesPerTransfer = 3;  // header, K and V (dK and dV)

struct Moved {
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
};

/// Sizes of one rank that all formulas use.
struct RankSizes {
  std::int64_t rows = 0;         ///< batch · q_heads · own queries
  std::int64_t own_tokens = 0;   ///< keys of its chunk
  std::int64_t most_tokens = 0;  ///< keys of the largest chunk it visits
};

Layout query_layout(const Problem& problem, const RunOptions& options) {
  return make_layout(options, problem.shape.q_tokens, options.q_layout);
}
Layout key_layout(const Problem& problem, const RunOptions& options) {
  return make_layout(options, problem.shape.kv_tokens, options.kv_layout);
}

/// The run as all ranks share it: layouts, need, and the tokens of each chunk.
struct Whole {
  const Problem& problem;
  const RunOptions& options;
  Layout queries, keys;
  NeedMatrix need;
  std::vector<std::int64_t> tokens = {};  ///< keys of each owner

  Whole(const Problem& of_problem, const RunOptions& with_options)
      : Whole(of_problem, with_options,
              need_matrix(of_problem.mask, query_layout(of_problem, with_options),
                          key_layout(of_problem, with_options))) {}
  Whole(const Problem& of_problem, const RunOptions& with_options, NeedMatrix with_need)
      : problem(of_problem),
        options(with_options),
        queries(query_layout(problem, options)),
        keys(key_layout(problem, options)),
        need(std::move(with_need)) {
    for (int owner = 0; owner < options.ranks; ++owner) {
      tokens.push_back(keys.positions(owner).size());
    }
  }
  ScheduleCosts schedule(Pass pass) const {
    return schedule_costs(schedule_spec(options), need, pass, tokens);
  }
};

class Formulas {
 public:
  Formulas(const Whole& whole, int rank) : problem_(whole.problem), options_(whole.options) {
    const Shape& s = problem_.shape;
    sizes_.rows = s.batch * s.q_heads * whole.queries.positions(rank).size();
    // The largest chunk that this rank visits: its slots are as long as that.
    for (int owner = 0; owner < options_.ranks; ++owner) {
      const std::int64_t tokens = whole.tokens[static_cast<std::size_t>(owner)];
      if (owner == rank) {
        sizes_.own_tokens = tokens;
      } else if (whole.need.needs(rank, owner)) {
        sizes_.most_tokens = std::max(sizes_.most_tokens, tokens);
      }
    }
  }

  void add_traffic(const ChunkTraffic& kv, const ChunkTraffic& gradients, Moved& moved) const {
    // Every transfer has a header, even an empty one: chunks count, not tokens.
    moved.messages += kMessagesPerTransfer * (kv.chunks + gradients.chunks);
    moved.bytes += (kv.chunks + gradients.chunks) * header_bytes(options_.ranks) +
                   kv.tokens * wire_bytes_of(1) + gradients.tokens * gradient_bytes_of(1);
  }
  // K and V only: the own chunk as it is sent, in whatever buffer, and slots for visitors.
  std::int64_t held_kv(const RankCosts& costs) const {
    return wire_bytes_of(sizes_.own_tokens) + costs.slots * wire_bytes_of(sizes_.most_tokens);
  }
  /// Slots, and where the wire is lossy the encoded own chunk and one decoded chunk.
  std::int64_t chunks(const RankCosts& costs) const {
    std::int64_t bytes = costs.slots * wire_bytes_of(sizes_.most_tokens);
    if (!is_lossy(options_.wire, problem_.dtype)) return bytes;
    const Shape& s = problem_.shape;
    const std::int64_t decoded = s.batch * s.kv_heads * (s.head_dim + s.v_dim) *
                                 sizes_.most_tokens * dtype_info(problem_.dtype).bytes;
    return bytes + wire_bytes_of(sizes_.own_tokens) + decoded;
  }
  std::int64_t state() const {  // row_max, row_sum, acc (rows, v_dim)
    return sizes_.rows * (2 + problem_.shape.v_dim) * accumulator_bytes(problem_.dtype);
  }
  std::int64_t saved_rows() const {  // lse and delta
    return sizes_.rows * 2 * accumulator_bytes(problem_.dtype);
  }
  std::int64_t gradients(const RankCosts& costs) const {
    const std::int64_t dq =
        sizes_.rows * problem_.shape.head_dim * accumulator_bytes(problem_.dtype);
    // The first gradient slots hold sums under way, as long as any visitor; the other slots hold
    // sums that come home: they and the own sum are as long as the own chunk.
    const int travelling = std::min(costs.gradient_slots, kFirstHomeSum);
    const int home = 1 + std::max(0, costs.gradient_slots - kFirstHomeSum);
    return dq + travelling * gradient_bytes_of(sizes_.most_tokens) +
           home * gradient_bytes_of(sizes_.own_tokens);
  }

 private:
  std::int64_t wire_bytes_of(std::int64_t tokens) const {
    return wire_sizes(problem_, options_.wire, tokens).both();
  }
  std::int64_t gradient_bytes_of(std::int64_t tokens) const {
    const Shape& s = problem_.shape;
    return s.batch * s.kv_heads * (s.head_dim + s.v_dim) * tokens *
           accumulator_bytes(problem_.dtype);
  }

  const Problem& problem_;
  const RunOptions& options_;
  RankSizes sizes_;
};

EngineCosts rank_costs(const Whole& whole, int rank, const RankCosts& forward,
                       const RankCosts* backward) {
  const Formulas formulas(whole, rank);
  const int rounds = agreement_messages(whole.options.ranks);
  // Messages of the agreement before the first pass, as many sent as received.
  Moved sent{rounds * kAgreementBytes, rounds}, received = sent;
  EngineCosts costs;
  const std::int64_t saved = backward ? formulas.saved_rows() : 0;
  const auto add_pass = [&](const RankCosts& one, std::int64_t working_bytes) {
    formulas.add_traffic(one.kv_sent, one.gradients_sent, sent);
    formulas.add_traffic(one.kv_received, one.gradients_received, received);
    costs.peak_kv_bytes = std::max(costs.peak_kv_bytes, formulas.held_kv(one));
    // A pass frees what it held before the next one begins, so the peak is a maximum over passes;
    // lse and delta live through both.
    costs.peak_bytes = std::max(costs.peak_bytes, saved + formulas.chunks(one) + working_bytes);
  };
  add_pass(forward, formulas.state());
  if (backward) add_pass(*backward, formulas.gradients(*backward));
  costs.sent_bytes = sent.bytes;
  costs.sent_messages = sent.messages;
  costs.received_bytes = received.bytes;
  costs.received_messages = received.messages;
  return costs;
}

std::vector<EngineCosts> costs_of(const Whole& whole, Pass last_pass) {
  const ScheduleCosts forward = whole.schedule(Pass::forward);
  ScheduleCosts backward;
  if (last_pass == Pass::backward) backward = whole.schedule(Pass::backward);
  std::vector<EngineCosts> costs;
  for (int rank = 0; rank < whole.options.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    costs.push_back(rank_costs(whole, rank, forward.ranks[at],
                               backward.ranks.empty() ? nullptr : &backward.ranks[at]));
  }
  return costs;
}

}  // namespace

std::vector<EngineCosts> engine_costs(const Problem& problem, const RunOptions& options,
                                      Pass last_pass) {
  return costs_of(Whole(problem, options), last_pass);
}

std::vector<EngineCosts> engine_costs(const Problem& problem, const RunOptions& options,
                                      const NeedMatrix& need, Pass last_pass) {
  return costs_of(Whole(problem, options, need), last_pass);
}

EngineCosts engine_costs(const Problem& problem, const RunOptions& options, int rank,
                         Pass last_pass) {
  return engine_costs(problem, options, last_pass)[static_cast<std::size_t>(rank)];
}

std::vector<std::int64_t> engine_work(const Problem& problem, const RunOptions& options,
                                      Pass last_pass) {
  const Whole whole(problem, options);
  const std::int64_t products =
      kForwardProducts + (last_pass == Pass::backward ? kBackwardProducts : 0);
  std::vector<std::int64_t> work(static_cast<std::size_t>(options.ranks));
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int owner = 0; owner < options.ranks; ++owner) {
      work[static_cast<std::size_t>(rank)] +=
          problem.shape.batch * problem.shape.q_heads * products * whole.need.pairs(rank, owner);
    }
  }
  return work;
}

}  // namespace ringlab::ring
