// Faults: a kernel breaks a rule on the emulated GPU.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ringlab::cuda::emulator {

/// A kernel did what no GPU allows, or what a GPU allows and nobody means. what() names the block
/// and the thread, or for a deadlock what every thread waits for.
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Adds the block and the thread that runs, if one does.
[[noreturn]] void throw_fault(const std::string& text);

template <class... Values>
[[noreturn]] void fault(fmt::format_string<Values...> text, Values&&... values) {
  throw_fault(fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace ringlab::cuda::emulator
