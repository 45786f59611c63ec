// The problem that one rank of a stage is given, and the log of its work.
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "optimized/transport/communicator.h"
#include "reference/core/memory_meter.h"
#include "reference/core/run.h"

namespace ringlab::stages {

/// Blocks of work done, recorded by the stage where it computes them.
class WorkLog {
 public:
  using Clock = std::chrono::steady_clock;
  /// A block of work, noted when it is done.
  struct Block {
    int owner = 0;
    int hop = 0;
    bool backward = false;
    Clock::time_point end = {};
  };

  void visit(int owner, int hop, std::int64_t pairs) {
    visits_.push_back({owner, hop, pairs});
    blocks_.push_back({owner, hop, false, Clock::now()});
  }
  /// Marks all later work as backward pass, for gradients.
  void begin_backward() { backward_ = true; }
  /// Notes a block of the backward pass; visits are of the forward pass.
  void note_gradients(int owner) { blocks_.push_back({owner, gradients_++, true, Clock::now()}); }
  const std::vector<Block>& blocks() const { return blocks_; }
  bool backward() const { return backward_; }
  /// Notes that `bytes` of K/V chunks are held now; the maximum is reported.
  void hold_kv(std::int64_t bytes) { peak_kv_bytes_ = std::max(peak_kv_bytes_, bytes); }
  const std::vector<Visit>& visits() const { return visits_; }
  std::int64_t peak_kv_bytes() const { return peak_kv_bytes_; }

 private:
  std::vector<Visit> visits_;
  std::vector<Block> blocks_;
  bool backward_ = false;
  int gradients_ = 0;
  std::int64_t peak_kv_bytes_ = 0;
};

/// One rank's share. Shards are dense (batch, heads, rows of this rank, channels); row i of q is
/// the token at global position q_layout.positions(rank)[i].
template <class Element>
struct RankProblem {
  const Problem& problem;
  const RunOptions& options;
  const Layout& q_layout;
  const Layout& kv_layout;
  TensorView<const Element> q, k, v;
  TensorView<Element> out;
  TensorView<Accumulator<Element>> lse;
  /// The token of each row of out and lse. A stage that lays the tokens out itself sets it.
  Positions& out_positions;
  Communicator& network;
  MemoryMeter& memory;
  WorkLog& work;
  std::string_view stage = {};                    ///< its name, for error messages
  bool wants_gradients = false;                   ///< forward stages ignore it and what follows
  TensorView<const Element> dout = {};            ///< as out
  TensorView<Element> dq = {}, dk = {}, dv = {};  ///< as q, k, v

  /// True when gradients are wanted; then all later work is logged as backward pass.
  bool begin_backward() {
    if (wants_gradients) work.begin_backward();
    return wants_gradients;
  }
  int rank() const { return network.rank(); }
  int ranks() const { return network.ranks(); }
  /// The rank `hops` further on in the direction in which chunks travel; -1: the one before. At hop
  /// h of a ring a rank has the chunk of rank_at(-h).
  int rank_at(int hops) const {
    const int step = options.direction == RingDirection::next ? hops : -hops;
    return (rank() + step % ranks() + ranks()) % ranks();
  }
};

}  // namespace ringlab::stages
