// Processor and memory, as Linux tells them under /proc and /sys.
#include "cli/machine/machine.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace ringlab::cli {
namespace {

// The value of the first "KEY…: VALUE" line, or empty.
std::string field(const char* file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// "16384 kB" as bytes.
std::int64_t meminfo_bytes(std::string_view key) {
  std::istringstream text(field("/proc/meminfo", key));
  std::int64_t kibibytes = 0;
  text >> kibibytes;
  return kibibytes * 1024;
}

}  // namespace

Processor find_processor() {
  constexpr std::array<std::string_view, 13> kOfInterest = {
      "sse4_2",      "avx",      "avx2",     "fma",   "f16c", "avx512f", "avx512_bf16",
      "avx512_fp16", "amx_tile", "amx_bf16", "asimd", "sve",  "bf16"};
  Processor processor;
  processor.model = field("/proc/cpuinfo", "model name");
  processor.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string flags = field("/proc/cpuinfo", "flags");
  if (flags.empty()) flags = field("/proc/cpuinfo", "Features");
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    if (std::find(kOfInterest.begin(), kOfInterest.end(), word) != kOfInterest.end()) {
      processor.simd.push_back(word);
    }
  }
  return processor;
}

std::string find_nvidia_module() { return field("/proc/driver/nvidia/version", "NVRM version"); }

Memory find_memory() {
  Memory memory{meminfo_bytes("MemTotal"), meminfo_bytes("MemAvailable"), 0};
  std::ifstream limit("/sys/fs/cgroup/memory.max");  // "max" when there is none
  if (!(limit >> memory.limit_bytes)) memory.limit_bytes = 0;
  return memory;
}

}  // namespace ringlab::cli
