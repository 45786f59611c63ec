#include "reference/attention/fast_plan.h"

#include <algorithm>
#include <cmath>

#include "reference/attention/compensated.h"
#include "reference/attention/fast_error.h"
#include "reference/attention/fast_kernel.h"
#include "reference/attention/query_row.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab::fast {
namespace {

constexpr double kLargest = 0x1p900;  // far below overflow: room for sums of 2^60 terms

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t blocks_of(std::int64_t keys) { return (keys + kBlockKeys - 1) / kBlockKeys; }

/// Input error unless all are finite: a norm alone does not tell them from overflow.
void check_all_finite(const double* row, std::int64_t channels, const char* what) {
  for (std::int64_t c = 0; c < channels; ++c) check_finite(row[c], what);
}

double norm_of(const double* row, std::int64_t channels, const char* what) {
  const double squares = sum_of_squares(row, channels);
  // A norm that overflows is looked at number by number: an infinite input is the caller's error,
  // large but finite inputs are left to the compensated reference (in_range).
  if (!std::isfinite(squares)) check_all_finite(row, channels, what);
  return norm_bound(squares, channels);
}

}  // namespace

FastPlan::FastPlan(const AttentionInput& input, const ExactOptions& options)
    : input_(checked_input(input)),
      rows_(chosen_rows(options.rows, input.problem.shape.q_tokens)),
      visible_(input.problem.mask, rows_, input.problem.shape.q_tokens,
               input.problem.shape.kv_tokens) {
  const Shape& shape = input.problem.shape;
  keys_.resize(index(shape.batch * shape.kv_heads));
  query_norms_.resize(index(shape.batch * shape.q_heads * rows_per_head()));
  note_unseen();
  parallel_rows(shape.batch * shape.kv_heads, options.threads,
                [&] { return [&](std::int64_t head) { measure_head(head); }; });
}

std::int64_t FastPlan::kv_head(std::int64_t q_head) const {
  // Equal shares: of q_heads query heads, the first q_heads / kv_heads read K/V head 0, and so on.
  return q_head * input_->problem.shape.kv_heads / input_->problem.shape.q_heads;
}

void FastPlan::note_unseen() {
  const std::int64_t keys = input_->problem.shape.kv_tokens;
  has_unseen_.resize(index(blocks_of(keys)));
  for (std::int64_t j = 0; j < keys; ++j) {
    if (!visible_.seen_by_any(j)) has_unseen_[index(j / kBlockKeys)] = 1;
  }
  // A last block that is no whole grain is packed, with zeros behind.
  if (keys % kGrain != 0) has_unseen_.back() = 1;
}

void FastPlan::measure_head(std::int64_t head) {
  const Shape& shape = input_->problem.shape;
  const std::int64_t batch = head / shape.kv_heads, kv_head_here = head % shape.kv_heads;
  // Per block of keys: the largest norm of its keys, and the largest value of each channel.
  KeySizes& sizes = keys_[index(head)];
  sizes.key_norm.resize(has_unseen_.size());
  sizes.value_largest.resize(has_unseen_.size() * index(shape.v_dim));
  std::vector<double> buffer;
  for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
    if (!visible_.seen_by_any(j)) continue;  // may be NaN, and is not read
    double& norm = sizes.key_norm[index(j / kBlockKeys)];
    const double* k = channels_of(input_->k, batch, kv_head_here, j, buffer);
    norm = std::max(norm, norm_of(k, shape.head_dim, "score"));
    const double* v = channels_of(input_->v, batch, kv_head_here, j, buffer);
    double* largest = &sizes.value_largest[index(j / kBlockKeys * shape.v_dim)];
    if (!raise_to_magnitudes(v, shape.v_dim, largest)) check_all_finite(v, shape.v_dim, "output");
  }
  // Query heads that read this K/V head: each is measured by one thread only.
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  for (std::int64_t h = 0; h < group; ++h) measure_queries(batch, kv_head_here * group + h);
}

void FastPlan::measure_queries(std::int64_t batch, std::int64_t q_head) {
  const Shape& shape = input_->problem.shape;
  double* norms = query_norms_.data() + (batch * shape.q_heads + q_head) * rows_per_head();
  std::vector<double> buffer;
  for (std::int64_t slot = 0; slot < rows_per_head(); ++slot) {
    if (visible_.run(slot).size() == 0) continue;  // sees nothing: its norm is not used
    const double* q = channels_of(input_->q, batch, q_head, query(slot), buffer);
    norms[slot] = norm_of(q, shape.head_dim, "score");
  }
}

// Everything that the fast sums multiply must stay far from overflow, partial sums included.
bool FastPlan::in_range() const {
  double query = 0, key = 0, value = 0;
  for (const double norm : query_norms_) query = std::max(query, norm);
  for (const KeySizes& sizes : keys_) {
    for (const double norm : sizes.key_norm) key = std::max(key, norm);
    for (const double size : sizes.value_largest) value = std::max(value, size);
  }
  const double scale = std::abs(input_->problem.scale);
  const bool scale_is_normal = scale == 0 || (scale > 1 / kLargest && scale < kLargest);
  const double score = score_bound(input_->problem.shape.head_dim, scale, query, key);
  return scale_is_normal && key < kLargest && value < kLargest && 2 * scale * query < kLargest &&
         score < kLargest;
}

const KeySizes& FastPlan::keys(std::int64_t batch, std::int64_t kv_head_number) const {
  return keys_[index(batch * input_->problem.shape.kv_heads + kv_head_number)];
}

double FastPlan::query_norm(std::int64_t batch, std::int64_t q_head, std::int64_t slot) const {
  return query_norms_[index((batch * input_->problem.shape.q_heads + q_head) * rows_per_head() +
                            slot)];
}

}  // namespace ringlab::fast
