#include "reference/core/error.h"

#include <utility>

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

}  // namespace

Error::Error(ErrorKind kind, ErrorParts parts)
    : std::runtime_error(sentence(parts)), kind_(kind), parts_(std::move(parts)) {}

void throw_usage_error(ErrorParts parts) { throw Error(ErrorKind::usage, std::move(parts)); }
void throw_input_error(ErrorParts parts) { throw Error(ErrorKind::input, std::move(parts)); }
void throw_environment_error(ErrorParts parts) {
  throw Error(ErrorKind::environment, std::move(parts));
}

}  // namespace ringlab
