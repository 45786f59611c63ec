// Faults: a kernel breaks a rule on the emulated GPU.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ringlab::cuda::emulator {

/// A kernel broke a rule of GPUs, or did something that GPUs allow and no kernel should do. what()
/// names the block and the thread, or for a deadlock the waits of all threads.
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws a fault with `text`, and with the block and the thread that runs, if one does.
[[noreturn]] void throw_fault(const std::string& text);

template <class... Values>
[[noreturn]] void fault(fmt::format_string<Values...> text, Values&&... values) {
  throw_fault(fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace ringlab::cuda::emulator
