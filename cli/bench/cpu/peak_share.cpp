#include "cli/bench/cpu/peak_share.h"

namespace ringlab::bench {

std::vector<PeakShare> shares_of_peak(Operation operation, const std::vector<Counted>& all,
                                      const TimingOptions& timing) {
  const PeakLoop peak(operation);
  const double peak_flops = peak.run(all.front().flops / 2);
  std::vector<Contender> contenders = {on_one_thread("peak", [&] { peak.run(peak_flops); })};
  for (const Counted& one : all) contenders.push_back(on_one_thread(one.id, one.work));
  const std::vector<Timing> timings = time_in_turn(contenders, timing);
  std::vector<PeakShare> shares;
  for (std::size_t i = 0; i < all.size(); ++i) {
    shares.push_back({.share = inverse(timings[i + 1].ratio, all[i].flops / peak_flops),
                      .gflops_per_s = inverse(timings[i + 1].seconds, all[i].flops * 1e-9),
                      .peak_gflops_per_s = inverse(timings[0].seconds, peak_flops * 1e-9)});
  }
  return shares;
}

}  // namespace ringlab::bench
