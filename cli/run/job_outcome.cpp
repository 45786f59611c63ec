#include "cli/run/job_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ringlab::cli {
namespace {

constexpr int kOutcomeTag = (1 << 20) + 2;

struct RankOutcome {
  std::int64_t exit_code = 0;
  std::string text = {};
};

void send_outcome(const RankOutcome& outcome, Communicator& network) {
  const std::array<std::int64_t, 2> head = {outcome.exit_code, std::ssize(outcome.text)};
  network.wait(network.post_send(0, kOutcomeTag, bytes_of(head.data(), std::ssize(head))));
  const auto text = bytes_of(outcome.text.data(), std::ssize(outcome.text));
  network.wait(network.post_send(0, kOutcomeTag, text));
}

RankOutcome receive_outcome(int rank, Communicator& network) {
  std::array<std::int64_t, 2> head = {};
  network.wait(
      network.post_receive(rank, kOutcomeTag, writable_bytes_of(head.data(), std::ssize(head))));
  RankOutcome outcome{.exit_code = head[0],
                      .text = std::string(static_cast<std::size_t>(head[1]), 0)};
  const auto text = writable_bytes_of(outcome.text.data(), head[1]);
  network.wait(network.post_receive(rank, kOutcomeTag, text));
  return outcome;
}

// "rank 3: …" or "ranks 1, 2: …" for each thing that is said; nothing in front when all say it.
std::string said_by(const std::vector<RankOutcome>& outcomes) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].exit_code == 0) continue;
    auto group = std::ranges::find_if(
        groups, [&](const auto& one) { return one.first == outcomes[rank].text; });
    if (group == groups.end()) group = groups.insert(group, {outcomes[rank].text, {}});
    group->second.push_back(rank);
  }
  if (groups.front().second.size() == outcomes.size()) return groups.front().first;
  std::string text;
  for (const auto& [said, ranks] : groups) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "\n",
                        ranks.size() > 1 ? "ranks" : "rank", fmt::join(ranks, ", "), said);
  }
  return text;
}

JobFailure hear_all(const RankOutcome& mine, Communicator& network) {
  std::vector<RankOutcome> outcomes = {mine};
  for (int rank = 1; rank < network.ranks(); ++rank) {
    outcomes.push_back(receive_outcome(rank, network));
  }
  const auto failed = std::ranges::find_if(
      outcomes, [](const RankOutcome& outcome) { return outcome.exit_code != 0; });
  if (failed == outcomes.end()) return {};
  return {.exit_code = static_cast<int>(failed->exit_code), .text = said_by(outcomes)};
}

}  // namespace

std::optional<JobFailure> share_failure(const std::optional<Error>& mine, Communicator& network) {
  const RankOutcome outcome =
      mine ? RankOutcome{.exit_code = mine->exit_code(), .text = mine->what()} : RankOutcome{};
  JobFailure verdict;
  std::int64_t exit_code = 0;
  if (network.rank() != 0) {
    send_outcome(outcome, network);
    network.wait(network.post_receive(0, kOutcomeTag, writable_bytes_of(&exit_code, 1)));
    verdict.exit_code = static_cast<int>(exit_code);
  } else {
    verdict = hear_all(outcome, network);
    exit_code = verdict.exit_code;
    for (int rank = 1; rank < network.ranks(); ++rank) {
      network.wait(network.post_send(rank, kOutcomeTag, bytes_of(&exit_code, 1)));
    }
  }
  if (verdict.exit_code == 0) return {};
  return verdict;
}

}  // namespace ringlab::cli
