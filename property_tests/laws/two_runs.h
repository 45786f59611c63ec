// Comparisons for laws about two runs of one subject, besides findings.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/laws/findings.h"
#include "property_tests/laws/shapes.h"
#include "property_tests/laws/trial.h"

namespace ringlab::verify {

/// The query tokens that a comparison looks at.
using RowFilter = std::function<bool(std::int64_t token)>;

/// Broken unless every number of `got` on these tokens (all when empty) equals its twin, or is at
/// most `allowed` from it where that is given; NaN equals nothing, +0 equals -0.
LawResult same_at(const std::string& name, const Tensor<double>& got, const Tensor<double>& want,
                  const RowFilter& tokens, const Tensor<double>* allowed);
/// same_at() for o and lse. `what` says what was changed between the runs.
LawResult same_rows(const std::string& what, const AttentionOutput& got,
                    const AttentionOutput& want, const RowFilter& rows = {},
                    const std::optional<ForwardTolerance>& allowed = {});

/// The tolerances of two runs of this trial together, for subjects whose bits differ from run to
/// run; nothing for deterministic ones, which are asked for equal bits.
std::optional<ForwardTolerance> allowed_between_runs(const Subject& subject, const Trial& trial);
/// True when rows keep their bits when numbers that they do not see become `value`.
bool keeps_bits_beside(const Subject& subject, double value);
/// Tolerances of such rows: those of both runs where they do not keep their bits, else nothing.
std::optional<ForwardTolerance> allowed_beside(const Subject& subject, const Trial& trial,
                                               double value);

/// An answer and how far it may be from the exact one.
struct BoundedAnswer {
  AttentionOutput output;
  ForwardTolerance tolerance;
};
BoundedAnswer run_with_bounds(const Subject& subject, const AttentionInput& input,
                              const RunOptions& options);

/// Broken unless two answers to one question differ by no more than both tolerances together.
LawResult within_both_bounds(const std::string& what, const BoundedAnswer& got,
                             const BoundedAnswer& want);

/// `count` tokens from `first` on; the view copies nothing.
TensorView<const double> token_slice(TensorView<const double> view, std::int64_t first,
                                     std::int64_t count);
BoundedAnswer row_slice(const BoundedAnswer& answer, std::int64_t first, std::int64_t count);

/// Overwrites tokens [begin, end) of every batch and head.
void fill_tokens(Tensor<double>& tensor, std::int64_t begin, std::int64_t end, double value);

/// Numbers to write where the subject must not look: a large finite number, and NaN where the
/// subject promises never to let masked data take part.
std::vector<double> poisons(const Subject& subject);

/// The first of `results` that did not hold, else held with the worst ratio.
LawResult all_held(const std::vector<LawResult>& results);

/// The key position that query 0 is aligned with (bottom right); negative with fewer keys.
std::int64_t first_position(const Case& c);

/// Runs once as the case says and once for each poison that `overwrite` writes into the inputs;
/// broken unless these rows keep their numbers.
LawResult unchanged_under(const Subject& subject, const Case& c, const std::string& what,
                          const std::function<void(AttentionTensors&, double)>& overwrite,
                          const RowFilter& rows);

/// A query row, and the only key that it sees.
struct RowAndKey {
  std::int64_t row = 0, key = 0;
};
/// Compares out of query `row` with v of key `key`, to the bit where values travel exactly, else
/// within their value_errors(): the weight of a single key is 1. Within the subject's bounds where
/// powers next to 0 need not be 1.
LawResult row_is_value(const Subject& subject, const Trial& trial, const AttentionOutput& got,
                       const RowAndKey& only);

/// The case on two ranks or more.
Case several_ranks(Case c);
/// A seeded partition of `tokens` over `ranks` into stretches, empty ones among them.
Layout random_layout(std::int64_t tokens, int ranks, std::uint64_t seed);

}  // namespace ringlab::verify
