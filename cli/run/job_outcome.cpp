#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/line/launcher.h"
#include "cli/line/output.h"
#include "cli/run/job.h"
#include "optimized/transport/tell_all.h"

namespace ringlab::cli {
namespace {

constexpr int kOutcomeTag = (1 << 20) + 2;

struct RankOutcome {
  int exit_code = 0;
  std::string text = {};
  ErrorParts parts = {};
};

// An error as its exit code, message and parts, each ended by a zero.
std::string to_text(const std::optional<Error>& error) {
  std::string text = fmt::format("{}", error ? error->exit_code() : 0) + '\0';
  if (!error) return text;
  const auto& [where, expected, actual, hint] = error->parts();
  for (const std::string& part : {std::string(error->what()), where, expected, actual, hint}) {
    text += part + '\0';
  }
  return text;
}

RankOutcome from_text(const std::string& text) {
  std::size_t begin = 0;
  const auto next = [&] {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    begin = std::min(end + 1, text.size());
    return word;
  };
  RankOutcome outcome{.exit_code = std::stoi(next()), .text = next()};
  for (std::string* part : {&outcome.parts.where, &outcome.parts.expected, &outcome.parts.actual,
                            &outcome.parts.hint}) {
    *part = next();
  }
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

JobFailure failure_of(const std::vector<RankOutcome>& outcomes) {
  const auto failed = std::ranges::find_if(
      outcomes, [](const RankOutcome& outcome) { return outcome.exit_code != 0; });
  if (failed == outcomes.end()) return {};
  return {.exit_code = failed->exit_code, .text = said_by(outcomes), .parts = failed->parts};
}

// The JSON file for failures; set once, before there are other threads.
std::string& json_of_failures() {
  static std::string path;
  return path;
}

}  // namespace

std::optional<JobFailure> share_failure(const std::optional<Error>& mine, Communicator& network) {
  std::vector<RankOutcome> outcomes;
  for (const std::string& text : gather_texts(to_text(mine), kOutcomeTag, network)) {
    outcomes.push_back(from_text(text));
  }
  JobFailure failure = failure_of(outcomes);
  failure.exit_code =
      std::stoi(text_of_first(std::to_string(failure.exit_code), kOutcomeTag, network));
  if (failure.exit_code == 0) return {};
  return failure;
}

void say_to_user(const std::string& text) {
  if (std::fputs(text.c_str(), stderr) >= 0 && std::fflush(stderr) == 0) return;
  std::FILE* const terminal = std::fopen("/dev/tty", "we");
  if (terminal == nullptr) return;
  std::fputs(text.c_str(), terminal);
  std::fclose(terminal);
}

void tell_failures_to(const std::string& json_path) { json_of_failures() = json_path; }

void tell_as_json(int rank, const Error& error, const std::string& message) {
  const std::string& path = json_of_failures();
  if (path.empty()) return;
  const bool is_first = rank < 0 ? is_first_rank() : rank == 0;
  const auto* of_rank = dynamic_cast<const RankError*>(&error);
  const bool blames_first = of_rank != nullptr && of_rank->failure().suspect == 0;
  if (is_first || (rank == 1 && blames_first && path != "-")) {
    write_failure("run", path, error, message);
  }
}

std::atomic<int>& told_failure() {
  static std::atomic<int> exit_code = 0;
  return exit_code;
}

int end_job(JobSession& session, const JobFailure& failure) {
  if (session.rank() == 0) say_to_user(fmt::format("ringlab: {}\n", failure.text));
  told_failure() = failure.exit_code;
  const Error error(static_cast<ErrorKind>(failure.exit_code), failure.parts);
  tell_as_json(session.rank(), error, failure.text);
  session.finish();
  return failure.exit_code;
}

}  // namespace ringlab::cli
