// --check: a result next to the fp64 reference.
#pragma once

#include <cstdint>
#include <string>

#include "cli/line/arguments.h"
#include "property_tests/undecided.h"
#include "reference/attention/exact.h"
#include "reference/core/numerics.h"
#include "reference/core/report.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// The fp64 reference of o and lse: the fast one for subjects in fp32 or less, which leave room for
/// the error of its plain sums.
ExactForward reference_for(const AttentionInput& input, const ExactOptions& options);

struct CheckedResult {
  Report report;
  verify::Settlement settled;  ///< of elements that passed only by the reference's own error
  bool passed() const { return report.held() && settled.wrong == 0; }
};
/// Checks o and lse, and with input.dout dq, dk and dv.
CheckedResult check_result(const AttentionInput& input, const NumericsProfile& profile,
                           const RunResult& got);

/// Checks the rows of one rank out of the whole `input`. The reference of o and lse is computed for
/// these rows only, that of the gradients as a whole.
CheckedResult check_shard(const AttentionInput& input, const RunOptions& options,
                          const NumericsProfile& profile, int rank, const RunResult& got);

/// The chosen rows that one rank holds, ascending, and its results of them.
struct SampledRows {
  std::vector<std::int64_t> rows;
  AttentionOutput output;
};
SampledRows rows_of_rank(const std::vector<std::int64_t>& rows, const Positions& queries,
                         const AttentionOutput& output);

/// The number of rows that --check-rows names, 0 without it. Usage error when --check is given too.
std::int64_t take_check_rows(Arguments& arguments);
/// Usage error when the problem has fewer rows than `wanted`.
void check_row_count(std::int64_t wanted, const Problem& problem);
/// The check of gradients beside a check of some rows.
enum class GradientCheck { no_gradients, none, by_sums };
/// "o and lse of 64 of 1 048 576 query rows, all 8 heads", and how gradients were checked.
std::string describe_rows(std::size_t rows, const Problem& problem, GradientCheck gradients);

}  // namespace ringlab::cli
