#include "cli/run/gradient_sums.h"

#include <vector>

#include "cli/report/human.h"

namespace ringlab::cli {
namespace {

constexpr int kSumsTag = (1 << 20) + 9;

}  // namespace

void gather_sums(verify::GradientIdentities& mine, Communicator& network) {
  std::vector<double> numbers = mine.gathered();
  const auto count = std::ssize(numbers);
  if (network.rank() != 0) {
    network.wait(network.post_send(0, kSumsTag, bytes_of(numbers.data(), count)));
    return;
  }
  for (int rank = 1; rank < network.ranks(); ++rank) {
    network.wait(network.post_receive(rank, kSumsTag, writable_bytes_of(numbers.data(), count)));
    mine.add_gathered(numbers);
  }
}

void print_identities(const verify::GradientIdentities& sums, Json& document, Output& output) {
  document["identities"] = Json::array();
  for (const verify::Identity& identity : sums.results()) {
    document["identities"].push_back({{"law", identity.law},
                                      {"name", identity.name},
                                      {"off_over_likely", json_number(identity.worst)},
                                      {"where", identity.where},
                                      {"holds", identity.holds()}});
    output.print("check  {}  {}  {}: off by {} of what rounding makes likely (wrong above {}){}\n",
                 identity.law, identity.holds() ? "ok   " : "WRONG", identity.name,
                 report::human_ratio(identity.worst), verify::Identity::kMost,
                 identity.where.empty() ? "" : ", most in " + identity.where);
  }
}

}  // namespace ringlab::cli
