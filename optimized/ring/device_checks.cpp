#include "optimized/ring/device_checks.h"

#include <string>

#include "optimized/ring/host/wire.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

[[noreturn]] void refuse(const char* where, const char* expected, const std::string& actual) {
  throw_usage_error(
      {.where = where, .expected = expected, .actual = actual, .hint = "Use --device cpu"});
}

}  // namespace

void check_device_abilities(const Problem& problem, const RunOptions& options) {
  const Modifiers& modifiers = problem.modifiers;
  if (modifiers.changes_scores() || modifiers.dropout != 0 || !modifiers.sinks.empty()) {
    refuse("modifiers", "none on devices", modifiers_text(modifiers));
  }
  if (problem.mask.has_bits()) refuse("mask", "no bit matrix on devices", problem.mask.text());
  if (is_lossy(options.wire, problem.dtype)) {
    refuse("wire", "exact on devices", "one that rounds K and V");
  }
}

}  // namespace ringlab::ring
