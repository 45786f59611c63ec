// One rank's rows of q, k, v: read from a file without the rest of it, made, or cut from the whole.
#pragma once

#include <optional>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/random_input.h"
#include "optimized/ring/ends.h"

namespace ringlab::cli {

/// Input of a run, perhaps without tensors; in a job also the rows of one rank.
struct RankInput {
  LoadedInput loaded = {};
  AttentionTensors mine = {};
  std::optional<Tensor<double>> dout = {};  ///< this rank's rows

  ring::RankRows<double> shard() const;
  RandomInput random() const { return {loaded.problem, loaded.seed}; }
};

struct RankInputWish {
  int rank = 0;
  bool whole = false;            ///< the check needs all keys and values
  bool whole_if_random = false;  ///< even if any of them can be made again
  bool gradients = false;        ///< read do too
};

/// With --input only this rank's rows are read, and only they are checked to be finite and to fit
/// the dtype; with --random only they are made. With --text every rank makes the whole and keeps
/// its rows, as with wish.whole, which --random makes only for `whole_if_random`.
/// Errors as load_input().
RankInput load_rank_input(Arguments& arguments, const RunOptions& options,
                          const RankInputWish& wish);

}  // namespace ringlab::cli
