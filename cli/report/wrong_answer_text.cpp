// A wrong answer on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "cli/report/wrong_answer.h"

namespace ringlab::report {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 12;
constexpr std::string_view kMore = " …";
constexpr std::size_t kMostSeen = 2;

/// Words on at most `most` lines, each after the first indented; what does not fit is "…".
std::vector<std::string> wrapped(const std::string& first, const std::string& text,
                                 std::size_t most) {
  std::vector<std::string> lines = {first};
  std::istringstream words(text);
  bool is_new = true;
  for (std::string word; words >> word;) {
    const bool fits = lines.back().size() + 1 + word.size() <= kWidth - kMore.size();
    if (!fits && !is_new) {
      if (lines.size() == most) {
        lines.back() += kMore;
        return lines;
      }
      lines.emplace_back(kIndent, ' ');
      is_new = true;
    }
    lines.back() += (is_new ? "" : " ") + word;
    is_new = false;
  }
  return lines;
}

void add(std::vector<std::string>& lines, const char* title, const std::string& text,
         std::size_t most) {
  if (text.empty()) return;
  for (std::string& line : wrapped(fmt::format("  {:<10}", title), text, most)) {
    lines.push_back(std::move(line));
  }
}

}  // namespace

std::string wrong_answer_text(const WrongAnswer& answer) {
  std::vector<std::string> before = wrapped(answer.subject + " is WRONG: ", answer.name, 2);
  std::vector<std::string> after;
  add(after, "found", answer.found, 2);
  for (std::size_t n = 0; n < std::min(kMostSeen, answer.at.size()); ++n) {
    add(after, "seen", answer.at[n], 2);
  }
  add(after, "again", answer.again, 1);
  add(after, "think", answer.question, 2);
  std::string law = answer.law;
  if (answer.other_laws > 0) {
    law +=
        fmt::format("; and {} other law{}", answer.other_laws, answer.other_laws == 1 ? "" : "s");
  }
  add(after, "breaks", law, 2);
  if (!answer.replay.empty()) after.push_back(fmt::format("  {:<10}{}", "replay", answer.replay));
  if (answer.smallest) {
    add(before, "case", case_words(*answer.smallest), 2);
    const std::size_t taken = 1 + before.size() + after.size();
    const std::size_t room = taken < kMostAnswerLines ? kMostAnswerLines - taken : 0;
    std::vector<std::string> rows = number_rows(*answer.smallest, answer.marked, answer.answer);
    if (rows.empty() || rows.size() > room) {
      rows = pair_rows(*answer.smallest, answer.marked, room);
    }
    for (const std::string& row : rows) {
      before.push_back(std::string(kIndent, ' ') + row);
    }
  }
  std::string text = "\n";
  for (const auto& lines : {before, after}) {
    for (const std::string& line : lines) text += line + "\n";
  }
  return text;
}

}  // namespace ringlab::report
