#include "property_tests/plugins/environment.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

extern char** environ;

namespace ringlab::plugins {
namespace {

constexpr std::string_view kNames =
    " PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TERM LD_LIBRARY_PATH LD_PRELOAD "
    "PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CC CXX CPATH LIBRARY_PATH ";
constexpr std::string_view kPrefixes[] = {
    "LC_",     "XDG_",   "RINGLAB_", "OMP_",    "GOMP_", "KMP_",   "MKL_",           "OPENBLAS_",
    "BLIS_",   "DNNL_",  "ONEDNN_",  "XLA_",    "JAX_",  "TORCH_", "TORCHINDUCTOR_", "PYTORCH_",
    "TRITON_", "NUMBA_", "CUDA_",    "NVIDIA_", "ROCR_", "HIP_",   "ASAN_",          "UBSAN_",
    "TSAN_",   "LSAN_",  "GCOV_",    "LLVM_"};
constexpr std::string_view kSecrets[] = {"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"};

bool is_for_others(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  const auto holds = [&](std::string_view word) { return name.find(word) != name.npos; };
  if (std::ranges::any_of(kSecrets, holds)) return false;
  return kNames.find(" " + std::string(name) + " ") != kNames.npos ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<char*> environment_for_others() {
  std::vector<char*> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (is_for_others(*variable)) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

std::vector<std::string> clear_environment() {
  std::vector<char*> others;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!is_for_others(*variable)) others.push_back(*variable);
  }
  std::vector<std::string> names;
  for (char* const variable : others) {
    names.emplace_back(variable, std::strcspn(variable, "="));
    unsetenv(names.back().c_str());
    std::memset(variable, 0, std::strlen(variable));
  }
  return names;
}

}  // namespace ringlab::plugins
