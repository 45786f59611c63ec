#include "reference/core/error.h"

#include <cstdio>
#include <utility>

#include "reference/core/machine/plain_text.h"

namespace ringlab {
namespace {

std::string sentence(const ErrorParts& parts) {
  std::string text;
  const auto add = [&text](const char* separator, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += part;
  };
  std::string finding = parts.expected.empty() ? "" : "expected " + parts.expected;
  if (!parts.actual.empty()) finding += (finding.empty() ? "" : ", found ") + parts.actual;
  add("", parts.where);
  add(": ", finding);
  add(finding.empty() ? ": " : ". ", parts.hint);
  return text;
}

std::string whose(const RankFailure& failure) {
  const std::string rank = "rank " + std::to_string(failure.rank);
  return failure.step < 0 ? rank : rank + ", step " + std::to_string(failure.step);
}

std::string what_was_found(const RankFailure& failure) {
  if (failure.elapsed_s <= 0) return failure.reason;
  char elapsed[48];
  std::snprintf(elapsed, sizeof elapsed, " after %.3g s", failure.elapsed_s);
  return failure.reason + elapsed;
}

ErrorParts parts_of(const RankFailure& failure) {
  std::string hint;
  if (failure.suspect >= 0) hint = "Suspect: rank " + std::to_string(failure.suspect);
  return {.where = whose(failure),
          .expected = "to " + failure.operation,
          .actual = what_was_found(failure),
          .hint = std::move(hint)};
}

}  // namespace

Error::Error(ErrorKind kind, ErrorParts parts)
    : std::runtime_error(plain_text(sentence(parts))), kind_(kind), parts_(std::move(parts)) {}

RankError::RankError(RankFailure failure)
    : Error(ErrorKind::environment, parts_of(failure)), failure_(std::move(failure)) {}

void throw_usage_error(ErrorParts parts) { throw Error(ErrorKind::usage, std::move(parts)); }
void throw_input_error(ErrorParts parts) { throw Error(ErrorKind::input, std::move(parts)); }
void throw_environment_error(ErrorParts parts) {
  throw Error(ErrorKind::environment, std::move(parts));
}

}  // namespace ringlab
