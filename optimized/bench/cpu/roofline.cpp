#include "optimized/bench/cpu/roofline.h"

#include <fmt/format.h>

#include <algorithm>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/peak_loop.h"

namespace ringlab::bench {
namespace {

struct Point {
  std::string name;
  AttentionSizes sizes;
};

std::vector<Point> points(bool quick) {
  const std::int64_t tokens = quick ? 1024 : 2048;
  const std::int64_t long_tokens = quick ? 16384 : 65536;
  std::vector<Point> all;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const std::int64_t tile : {48, 96, 192, 384}) {
      all.push_back({fmt::format("d={}, {} queries share K and V", head_dim, tile),
                     {.queries = tokens,
                      .tokens = tokens,
                      .head_dim = head_dim,
                      .tiles = {tile, cpu::kTileKeys}}});
    }
    for (const std::int64_t queries : {1, 8}) {
      all.push_back({fmt::format("d={}, decoding {} queries of {}", head_dim, queries, long_tokens),
                     {.queries = queries, .tokens = long_tokens, .head_dim = head_dim}});
    }
  }
  return all;
}

RooflinePoint measure_point(const Point& point, int rounds) {
  AttentionWork<float> work(point.sizes);
  const Timing timing =
      time_in_turn({on_one_thread(point.name, [&] { work.run_kernel(); })}, {.rounds = rounds})
          .front();
  return {point.name, work.forward_flops() / work.forward_bytes(),
          inverse(timing.seconds, work.forward_flops())};
}

}  // namespace

Roofline measure_roofline(bool quick) {
  const int rounds = quick ? 3 : 7;
  Roofline roofline;
  for (const PeakOperation operation : {PeakOperation::f32_fma, PeakOperation::f64_fma,
                                        PeakOperation::bf16_dot, PeakOperation::bf16_matrix}) {
    if (!PeakLoop::missing(operation).empty()) continue;
    roofline.ceilings.push_back({name_of(operation), PeakLoop(operation).flops_per_s()});
  }
  roofline.slopes = measure_bandwidths();
  for (const Point& point : points(quick)) roofline.points.push_back(measure_point(point, rounds));
  return roofline;
}

}  // namespace ringlab::bench
