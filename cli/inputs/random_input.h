// --random: inputs that need not exist as a whole, because any row of them can be made again.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/inputs/problem_options.h"
#include "property_tests/generators/random_rows.h"
#include "property_tests/sampled_check.h"

namespace ringlab::cli {

/// The problem and the seed that determine every row.
struct RandomInput {
  Problem problem;
  std::uint64_t seed = 1;

  /// The rows of these tokens, in the problem's dtype.
  template <class Element>
  Tensor<Element> rows(verify::RandomTensor tensor, const Positions& tokens) const {
    return verify::random_tensor<Element>({seed, tensor}, extents(tensor), tokens);
  }
  /// The same rows, widened.
  Tensor<double> doubles(verify::RandomTensor tensor, const Positions& tokens) const;
  Extents extents(verify::RandomTensor tensor) const;
};

/// Makes one group of heads at a time: all its keys and values, of its queries only `rows`.
verify::HeadGroupSource random_groups(const RandomInput& input,
                                      const std::vector<std::int64_t>& rows);

}  // namespace ringlab::cli
