#include "reference/model/kernel_speeds.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace ringlab::model {
namespace {

DType family_of(DType dtype) { return dtype == DType::f16 ? DType::bf16 : dtype; }

bool same_place(const KernelSpeed& a, const KernelSpeed& b) {
  return a.causal == b.causal && a.tokens == b.tokens;
}

double between(double low, double high, double share) { return low + share * (high - low); }

/// `low` and `high` are of the same length and mask.
KernelSpeed mixed(const KernelSpeed& low, const KernelSpeed& high, std::int64_t head_dim) {
  const double share = static_cast<double>(head_dim - low.head_dim) /
                       static_cast<double>(high.head_dim - low.head_dim);
  KernelSpeed speed = low;
  speed.head_dim = head_dim;
  speed.forward_flops = between(low.forward_flops, high.forward_flops, share);
  speed.backward_flops = between(low.backward_flops, high.backward_flops, share);
  return speed;
}

}  // namespace

void SpeedCurve::add(double tokens, double flops) {
  points_.emplace_back(tokens, flops);
  std::ranges::sort(points_);
}

double SpeedCurve::at(double tokens) const {
  const auto above =
      std::ranges::lower_bound(points_, tokens, {}, &std::pair<double, double>::first);
  if (above == points_.begin()) return above->second;
  if (above == points_.end()) return points_.back().second;
  const auto below = above - 1;
  const double share = std::log(tokens / below->first) / std::log(above->first / below->first);
  return between(below->second, above->second, share);
}

std::vector<KernelSpeed> speeds_at(const std::vector<KernelSpeed>& all, DType dtype,
                                   std::int64_t head_dim) {
  std::optional<std::int64_t> below, above;  // the nearest numbers of channels
  for (const KernelSpeed& speed : all) {
    if (family_of(speed.dtype) != family_of(dtype)) continue;
    if (speed.head_dim <= head_dim) below = std::max(below.value_or(0), speed.head_dim);
    if (speed.head_dim >= head_dim) {
      above = std::min(above.value_or(speed.head_dim), speed.head_dim);
    }
  }
  if (!below) below = above;
  if (!above) above = below;
  std::vector<KernelSpeed> found;
  for (const KernelSpeed& low : all) {
    if (family_of(low.dtype) != family_of(dtype) || low.head_dim != below) continue;
    const auto high = std::ranges::find_if(all, [&](const KernelSpeed& other) {
      return family_of(other.dtype) == family_of(dtype) && other.head_dim == above &&
             same_place(low, other);
    });
    found.push_back(below == above || high == all.end() ? low : mixed(low, *high, head_dim));
  }
  return found;
}

double BlockSpeeds::flops(Pass pass, double tokens, bool cut) const {
  const bool forward = pass == Pass::forward;
  const SpeedCurve& whole = forward ? forward_whole : backward_whole;
  const SpeedCurve& diagonal = forward ? forward_cut : backward_cut;
  if (!cut) return whole.at(tokens);
  if (tokens <= diagonal.longest()) return diagonal.at(tokens);
  const double share = diagonal.longest() / tokens;
  return 1 / (share / diagonal.at(tokens) + (1 - share) / whole.at(tokens));
}

BlockSpeeds block_speeds(const std::vector<KernelSpeed>& speeds, std::int64_t head_dim) {
  BlockSpeeds curves;
  if (std::ranges::count(speeds, head_dim, &KernelSpeed::head_dim) == 0) return curves;
  const bool both = std::ranges::count(speeds, true, &KernelSpeed::causal) > 0 &&
                    std::ranges::count(speeds, false, &KernelSpeed::causal) > 0;
  for (const KernelSpeed& speed : speeds) {
    const auto tokens = static_cast<double>(speed.tokens);
    if (!both || !speed.causal) {
      curves.forward_whole.add(tokens, speed.forward_flops);
      curves.backward_whole.add(tokens, speed.backward_flops);
    }
    if (!both || speed.causal) {
      curves.forward_cut.add(tokens, speed.forward_flops);
      curves.backward_cut.add(tokens, speed.backward_flops);
    }
  }
  return curves;
}

}  // namespace ringlab::model
