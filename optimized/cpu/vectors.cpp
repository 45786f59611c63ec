#include "optimized/cpu/vectors.h"

#include <hwy/targets.h>

#include <algorithm>
#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/bf16/bf16_dot_amx.h"
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

/// All targets, widest first, whatever was chosen.
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

/// A target, and its products of bf16 numbers, or null.
struct VectorChoice {
  std::string name;
  std::int64_t target;
  const bf16_dot::Products* bf16_products;
};

/// All choices, widest first.
const std::vector<VectorChoice>& choices() {
  static const std::vector<VectorChoice> all = [] {
    std::vector<VectorChoice> found;
    for (const std::int64_t target : targets()) {
      if (target == HWY_AVX3 && bf16_dot::available()) {
        if (bf16_dot::amx_available()) {
          found.push_back({"avx512_amx", target, &bf16_dot::kAmxProducts});
        }
        found.push_back({"avx512_bf16", target, &bf16_dot::kDotProducts});
      }
      found.push_back({name_of(target), target, nullptr});
    }
    return found;
  }();
  return all;
}

const VectorChoice*& in_use() {
  static const VectorChoice* choice = &choices().front();
  return choice;
}

}  // namespace

std::vector<std::string> available_vectors() {
  std::vector<std::string> names;
  for (const VectorChoice& choice : choices()) names.push_back(choice.name);
  return names;
}

std::string vectors_in_use() { return in_use()->name; }

const bf16_dot::Products* bf16_products_in_use() { return in_use()->bf16_products; }

void use_vectors(const std::string& name) {
  std::string known;
  for (const VectorChoice& choice : choices()) {
    known += (known.empty() ? "" : ", ") + choice.name;
    if (choice.name != name) continue;
    in_use() = &choice;
    hwy::SetSupportedTargetsForTest(choice.target);
    hwy::GetChosenTarget().Update(choice.target);
    return;
  }
  throw_usage_error({.where = "vectors",
                     .expected = "one of " + known + ", which this processor and build have",
                     .actual = name});
}

}  // namespace ringlab::cpu
