#include "optimized/cuda/driver_check.h"

#include <string>

namespace ringlab::cuda {
namespace {

constexpr int kMajor = 1000, kMinor = 10;

std::string version_text(int version) {
  return std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor);
}

}  // namespace

std::optional<ErrorParts> driver_problem(int driver, int runtime) {
  const int oldest = runtime / kMajor * kMajor;
  if (driver >= oldest && driver > 0) return {};
  return ErrorParts{
      .where = "NVIDIA driver",
      .expected = "one for CUDA " + version_text(oldest) + " or newer, which this build needs",
      .actual = driver == 0 ? "none" : "one for CUDA " + version_text(driver),
      .hint = std::string(driver == 0 ? "Install" : "Update") +
              " it, or compute without a device; `ringlab doctor` says what there is"};
}

}  // namespace ringlab::cuda
