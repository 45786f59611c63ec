#include "reference/core/machine/machine_failure.h"

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace ringlab {
namespace {

constexpr const char* kWhatToDo = "Lift its limits (ulimit -a), or ask for less at a time";

MachineError ran_out(const std::string& where, const std::string& expected,
                     const std::string& found) {
  return MachineError({.where = where, .expected = expected, .actual = found, .hint = kWhatToDo});
}

}  // namespace

bool is_of_machine(int code) {
  switch (code) {
    case EAGAIN:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      return true;
    default:
      return false;
  }
}

std::optional<MachineError> machine_failure(const std::exception& thrown,
                                            const std::string& where) {
  if (const auto* known = dynamic_cast<const MachineError*>(&thrown)) return *known;
  if (dynamic_cast<const std::bad_alloc*>(&thrown)) {
    return ran_out(where, "memory", "out of memory");
  }
  const auto* const failed = dynamic_cast<const std::system_error*>(&thrown);
  const bool has_errno = failed && (failed->code().category() == std::generic_category() ||
                                    failed->code().category() == std::system_category());
  if (!has_errno || !is_of_machine(failed->code().value())) return {};
  return ran_out(where, "threads, descriptors and memory", failed->what());
}

void throw_if_of_machine(int code, const std::string& what) {
  if (is_of_machine(code)) throw std::system_error(code, std::generic_category(), what);
}

void throw_failed_call(ErrorKind otherwise, ErrorParts parts, int code) {
  parts.actual = std::system_category().message(code);
  if (is_of_machine(code)) throw MachineError(std::move(parts));
  throw Error(otherwise, std::move(parts));
}

}  // namespace ringlab
