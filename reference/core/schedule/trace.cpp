#include "reference/core/schedule/trace.h"

#include <array>
#include <cstdio>

namespace ringlab {

std::string_view trace_kind_name(TraceKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"compute", "send", "receive", "wait", "add"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string describe(const TraceEvent& event) {
  std::array<char, 64> times{};
  std::snprintf(times.data(), times.size(), ", %.3f to %.3f ms",
                static_cast<double>(event.begin_ns) * 1e-6,
                static_cast<double>(event.end_ns) * 1e-6);
  std::string text =
      "step " + std::to_string(event.step) + ": " + std::string(trace_kind_name(event.kind)) +
      (event.owner == kNobody
           ? ""
           : (event.gradient ? " gradients of chunk " : " chunk ") + std::to_string(event.owner));
  if (event.peer != kNobody) {
    text +=
        (event.kind == TraceKind::send ? " to rank " : " from rank ") + std::to_string(event.peer);
  }
  return text + times.data();
}

}  // namespace ringlab
