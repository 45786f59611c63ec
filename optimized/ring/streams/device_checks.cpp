#include "optimized/ring/streams/device_checks.h"

#include <algorithm>
#include <string>

#include "optimized/ring/host/wire.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

[[noreturn]] void refuse(const char* where, const char* expected, const std::string& actual) {
  throw_usage_error(
      {.where = where, .expected = expected, .actual = actual, .hint = "Use --device cpu"});
}

// The accumulators of both kernels lie in registers and shared memory, which have room for 256
// channels at most (optimized/cuda/portable/portable.h).
void check_channels(const Shape& shape) {
  constexpr std::int64_t kMost = 256;
  if (std::max(shape.head_dim, shape.v_dim) <= kMost) return;
  refuse(
      "shape", "head_dim and v_dim of at most 256 on devices",
      "head_dim = " + std::to_string(shape.head_dim) + ", v_dim = " + std::to_string(shape.v_dim));
}

}  // namespace

void check_kernel_dtype(DType dtype) {
  if (dtype == DType::f16 || dtype == DType::bf16) return;
  throw_usage_error({.where = "--dtype",
                     .expected = "f16 or bf16 for the kernels on devices",
                     .actual = std::string(dtype_info(dtype).name),
                     .hint = "Give --dtype bf16, or use --device cpu"});
}

void check_device_abilities(const Problem& problem, const RunOptions& options) {
  // No kernel for devices modifies scores: a wish for modifiers must not be ignored.
  const Modifiers& modifiers = problem.modifiers;
  if (modifiers.changes_scores() || modifiers.dropout != 0 || !modifiers.sinks.empty()) {
    refuse("modifiers", "none on devices", modifiers_text(modifiers));
  }
  // Kernels for devices take masks only as one interval of rows per query (decision 19).
  if (problem.mask.has_bits()) refuse("mask", "no bit matrix on devices", problem.mask.text());
  // Kernels read chunks in slots as they came: nothing decodes on devices.
  if (is_lossy(options.wire, problem.dtype)) {
    refuse("wire", "exact on devices", "one that rounds K and V");
  }
}

void check_device_run(const Problem& problem, const RunOptions& options) {
  check_kernel_dtype(problem.dtype);
  check_channels(problem.shape);
  check_device_abilities(problem, options);
}

}  // namespace ringlab::ring
