#include "optimized/cpu/vectors.h"

#include <hwy/targets.h>

#include <algorithm>
#include <cstdint>

#include "reference/core/error.h"

namespace ringlab::cpu {
namespace {

std::string name_of(std::int64_t target) {
  if (target == HWY_AVX3) return "avx512";
  if (target == HWY_AVX2) return "avx2";
  std::string name = hwy::TargetName(target);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

/// Widest first, whatever was chosen.
const std::vector<std::int64_t>& targets() {
  static const std::vector<std::int64_t> all = [] {
    hwy::SetSupportedTargetsForTest(0);
    std::vector<std::int64_t> found = hwy::SupportedAndGeneratedTargets();
    if (!std::ranges::count(found, std::int64_t{HWY_STATIC_TARGET})) {
      found.push_back(HWY_STATIC_TARGET);
    }
    std::ranges::sort(found);  // a better target has the smaller number
    return found;
  }();
  return all;
}

std::int64_t& in_use() {
  static std::int64_t target = targets().front();
  return target;
}

}  // namespace

std::vector<std::string> available_vectors() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets()) names.push_back(name_of(target));
  return names;
}

std::string vectors_in_use() { return name_of(in_use()); }

void use_vectors(const std::string& name) {
  std::string known;
  for (const std::int64_t target : targets()) {
    known += (known.empty() ? "" : ", ") + name_of(target);
    if (name_of(target) != name) continue;
    in_use() = target;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    return;
  }
  throw_usage_error({.where = "vectors",
                     .expected = "one of " + known + ", which this processor and build have",
                     .actual = name,
                     .hint = ""});
}

}  // namespace ringlab::cpu
