#include "reference/core/positions.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "reference/core/error.h"

namespace ringlab {
namespace {

std::string describe(const PositionRun& run) {
  return "(first " + std::to_string(run.first) + ", count " + std::to_string(run.count) +
         ", stride " + std::to_string(run.stride) + ")";
}

void check_run(const PositionRun& run) {
  std::int64_t last = 0;
  const bool overflows =
      run.count > 0 && (__builtin_mul_overflow(run.count - 1, run.stride, &last) ||
                        __builtin_add_overflow(last, run.first, &last));
  // The last position is below the largest number, so that one can be added to it anywhere.
  if (run.first < 0 || run.count < 0 || run.stride < 1 || overflows || last == INT64_MAX) {
    throw_input_error({.where = "positions",
                       .expected = "runs with first >= 0, count >= 0, stride >= 1, below 2^63 - 1",
                       .actual = describe(run)});
  }
}

/// The position one stride behind the last one; -1 where no number is as large.
std::int64_t next_of(const PositionRun& run) {
  std::int64_t next = 0;
  const bool overflows = __builtin_mul_overflow(run.count, run.stride, &next) ||
                         __builtin_add_overflow(next, run.first, &next);
  return overflows ? -1 : next;
}

/// Moves `count` positions from the front of `from` to the end of `to`.
void hand_over(PositionRun& to, PositionRun& from, std::int64_t count) {
  to.count += count;
  from.count -= count;
  if (from.count > 0) from.first += count * from.stride;  // behind the last one it may overflow
}

/// Appends so that the runs are those that reading the list from left to right finds: every run is
/// as long as it can be. That form is unique, so equal lists have equal runs.
void append(std::vector<PositionRun>& runs, PositionRun run) {
  if (!runs.empty()) {
    PositionRun& last = runs.back();
    // A run of one position has no stride of its own: the next position gives it one.
    if (last.count == 1 && run.first > last.first) {
      last.stride = run.first - last.first;
      hand_over(last, run, 1);
    }
    // The new run begins where the last one would go on. With another stride only its
    // first position belongs to it.
    if (run.count > 0 && last.count > 1 && run.first == next_of(last)) {
      hand_over(last, run, run.stride == last.stride ? run.count : 1);
    }
  }
  if (run.count == 0) return;
  if (run.count == 1) run.stride = 1;  // one spelling of a single position
  runs.push_back(run);
}

}  // namespace

Positions::Positions(const std::vector<PositionRun>& runs) {
  for (const PositionRun& run : runs) {
    check_run(run);
    if (run.count > 0) append(runs_, run);
    size_ += run.count;
  }
}

Positions Positions::all(std::int64_t tokens) { return Positions({{0, tokens, 1}}); }

Positions Positions::from_list(const std::vector<std::int64_t>& positions) {
  Positions result;
  for (const std::int64_t position : positions) {
    check_run({position, 1, 1});
    append(result.runs_, {position, 1, 1});
    ++result.size_;
  }
  return result;
}

// Through runs, which are few: one per chunk in layouts without gaps.
std::int64_t Positions::operator[](std::int64_t i) const {
  assert(i >= 0 && i < size_);
  for (const PositionRun& run : runs_) {
    if (i < run.count) return run.first + i * run.stride;
    i -= run.count;
  }
  return -1;
}

std::vector<std::int64_t> Positions::to_list() const {
  std::vector<std::int64_t> list;
  list.reserve(static_cast<std::size_t>(size_));
  for (const PositionRun& run : runs_) {
    for (std::int64_t i = 0; i < run.count; ++i) list.push_back(run.first + i * run.stride);
  }
  return list;
}

Positions Positions::slice(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > size_ || count > size_ - first) {
    throw_input_error(
        {.where = "positions",
         .expected = "a slice within 0 … " + std::to_string(size_),
         .actual = std::to_string(count) + " rows from row " + std::to_string(first)});
  }
  Positions result;
  for (const PositionRun& run : runs_) {
    // Rows of this run to be skipped and to be taken; what is left goes on to the next.
    const std::int64_t skipped = std::min(first, run.count);
    const std::int64_t taken = std::min(count, run.count - skipped);
    if (taken > 0) append(result.runs_, {run.first + skipped * run.stride, taken, run.stride});
    result.size_ += taken;
    first -= skipped;
    count -= taken;
  }
  return result;
}

}  // namespace ringlab
