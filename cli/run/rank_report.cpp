#include <cstring>
#include <type_traits>

#include "cli/run/job.h"
#include "optimized/transport/tell_all.h"
#include "property_tests/stage_libraries/rank_stats_json.h"

namespace ringlab::verify {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Settlement, undecided, right, wrong, left)

}  // namespace ringlab::verify

namespace ringlab::cli {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, stats, seconds, worst, compared, unbounded, settled,
                                   right, clock_uncertainty_s, device, sums)

namespace {

constexpr int kReportTag = 1 << 20;  // far from the engine's own
constexpr int kTraceTag = (1 << 20) + 3;

}  // namespace

// As CBOR, which has NaN and infinities.
std::vector<RankReport> gather(const RankReport& mine, Communicator& network) {
  std::string text;
  nlohmann::json::to_cbor(nlohmann::json(mine), text);
  std::vector<RankReport> all;
  for (const std::string& one : gather_texts(text, kReportTag, network)) {
    all.push_back(nlohmann::json::from_cbor(one).get<RankReport>());
  }
  return all;
}

std::vector<TraceEvent> gather_events(const std::vector<TraceEvent>& mine, Communicator& network) {
  static_assert(std::is_trivially_copyable_v<TraceEvent>);  // travels as it lies in memory
  const std::string bytes(reinterpret_cast<const char*>(mine.data()),
                          mine.size() * sizeof(TraceEvent));
  std::vector<TraceEvent> all;
  for (const std::string& one : gather_texts(bytes, kTraceTag, network)) {
    const std::size_t before = all.size();
    all.resize(before + one.size() / sizeof(TraceEvent));
    if (!one.empty()) std::memcpy(all.data() + before, one.data(), one.size());
  }
  return all;
}

}  // namespace ringlab::cli
