// Visibility, read a third time from the definitions in core: distances are counted from the end of
// the sequence, heads by shares, pairs dropped by the Random123 library.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/run.h"

namespace ringlab::precise {

/// The place of a row, and the K/V head it reads. `slot` is that of its results among the rows
/// wanted.
struct RowPlace {
  std::int64_t batch = 0;
  std::int64_t q_head = 0;
  std::int64_t kv_head = 0;
  std::int64_t query = 0;
  std::int64_t slot = 0;
};

/// Input error when shapes, mask or views do not fit together.
void check_input(const AttentionInput& input);
/// check_input() for gradients; usage error when rows are named, as gradients take all.
void check_gradient_input(const AttentionInput& input, const TensorView<const double>& dout,
                          const std::vector<std::int64_t>& rows);
/// `rows`, all of them when empty. Usage error unless they are ascending rows of the problem.
std::vector<std::int64_t> wanted_rows(const std::vector<std::int64_t>& rows, const Shape& shape);

/// The row of a problem with this number, counted over batches, heads and wanted rows.
RowPlace place_of(const Shape& shape, const std::vector<std::int64_t>& rows, std::int64_t number);

/// Keys that the query sees, ascending. O(kv_tokens · terms of the mask).
std::vector<std::int64_t> seen_keys(const Problem& problem, std::int64_t query);

/// True when dropout keeps this pair, or there is no dropout.
bool is_kept(const Problem& problem, const RowPlace& row, std::int64_t key);

/// |position of the query - key|, what ALiBi multiplies.
std::int64_t distance_of(const Shape& shape, std::int64_t query, std::int64_t key);

/// The place of the channels of one token.
struct TokenAddress {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t token = 0;
};
/// Reads one token's channels into `values`. Input error naming the tensor when one is not finite.
void read_channels(const TensorView<const double>& tensor, const TokenAddress& at, const char* name,
                   std::vector<double>& values);

}  // namespace ringlab::precise
