#include "cli/machine/cuda_code.h"

#include <cctype>
#include <cstdlib>
#include <sstream>

namespace ringlab::cli {
namespace {

bool runs_on(const std::string& architecture, int major, int minor) {
  if (std::isdigit(static_cast<unsigned char>(architecture[0])) == 0) return true;
  char* end = nullptr;
  const auto number = static_cast<int>(std::strtol(architecture.c_str(), &end, 10));
  const std::string rest = end;  // "", "a", "f-real", "-virtual"
  const int device = 10 * major + minor;
  if (rest.starts_with("a")) return device == number;
  const bool same_major = number / 10 == major && device >= number;
  if (rest.starts_with("f")) return same_major;
  const bool is_ptx = !rest.ends_with("-real"), is_code = !rest.ends_with("-virtual");
  return (is_code && same_major) || (is_ptx && device >= number);
}

}  // namespace

bool has_code_for(const std::string& architectures, int major, int minor) {
  std::istringstream list(architectures);
  for (std::string each; list >> each;) {
    if (runs_on(each, major, minor)) return true;
  }
  return false;
}

}  // namespace ringlab::cli
