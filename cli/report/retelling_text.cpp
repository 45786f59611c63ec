#include "cli/report/retelling_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "cli/report/wrong_answer.h"
#include "property_tests/diagnosis/tomography.h"

namespace ringlab::report {
namespace {

constexpr std::size_t kLineWidth = 98;
constexpr std::size_t kMostMapRows = 8, kMostLaneLines = 10;
constexpr std::string_view kMoreCells = " …";
constexpr const char* kLegend =
    "[c] computes on chunk c, c>r sends it to rank r, c<r@s takes it from r into slot s, =c waits, "
    "! is wrong";
constexpr const char* kOfEmptyChunks =
    "(? is a chunk that leaves no trace in memory: one without keys)";

void add_all(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::string chunk_text(int owner) { return owner == kNobody ? "?" : fmt::format("{}", owner); }
std::string at_slot(const TraceEvent& event) {
  return event.slot == kHome ? "" : fmt::format("@{}", event.slot);
}

/// Steps of the forward pass, then those of the backward pass.
using Column = std::pair<Pass, int>;

/// The events of one rank, a cell of text for each step.
class RankLane {
 public:
  RankLane(std::vector<TraceEvent> events, bool repeats_chunks) : repeats_chunks_(repeats_chunks) {
    std::ranges::stable_sort(events, {}, &TraceEvent::begin_ns);
    for (const TraceEvent& event : events) add(event);
  }
  const std::map<Column, std::string>& cells() const { return cells_; }
  void mark(const Column& column) {
    std::string& cell = cells_[column];
    if (!cell.ends_with('!')) cell += " !";
  }
  /// The chunks of `needed` that the rank never computes on in the forward pass.
  std::vector<int> missing(std::vector<int> needed) const {
    if (std::ranges::find(computed_, kNobody) != computed_.end()) return {};
    std::erase_if(
        needed, [&](int owner) { return std::ranges::find(computed_, owner) != computed_.end(); });
    return needed;
  }

 private:
  void add(const TraceEvent& event) {
    std::string& cell = cells_[{event.pass, event.step}];
    const std::string chunk = chunk_text(event.owner);
    const bool waits = event.kind == TraceKind::wait;
    const bool never = event.end_ns < event.begin_ns;
    const std::string waited = chunk + (never ? " never !" : "");
    const bool goes_on = waits_ && column_ == Column(event.pass, event.step);
    column_ = {event.pass, event.step};
    if (waits && goes_on) {
      const bool is_new = waited_.insert(chunk).second || never;
      if (is_new) cell += "," + waited;
      return;
    }
    waits_ = waits;
    if (waits) waited_ = {chunk};
    cell += (cell.empty() ? "" : " ") + (waits ? "=" + waited : token(event, chunk));
  }

  std::string token(const TraceEvent& event, const std::string& chunk) {
    switch (event.kind) {
      case TraceKind::send:
        return fmt::format("{}>{}", chunk, event.peer);
      case TraceKind::receive:
        return fmt::format("{}<{}{}", chunk, event.peer, at_slot(event));
      case TraceKind::add:
        return "+" + chunk;
      case TraceKind::compute:
      case TraceKind::wait:
        break;
    }
    if (event.pass == Pass::backward) return fmt::format("[{}{}]", chunk, at_slot(event));
    const bool again = std::ranges::find(computed_, event.owner) != computed_.end();
    computed_.push_back(event.owner);
    const std::string name = event.owner == kNobody ? "all" : chunk;
    return fmt::format("[{}{}]{}", name, at_slot(event), again && !repeats_chunks_ ? "!" : "");
  }

  bool repeats_chunks_;  // repeated chunks are no mistake
  std::map<Column, std::string> cells_;
  std::vector<int> computed_;  // owners, in the forward pass
  bool waits_ = false;
  Column column_ = {};  // of the event before
  std::set<std::string> waited_;
};

std::string title_of(const Column& column) {
  return fmt::format("{} {}", column.first == Pass::forward ? "step" : "back", column.second);
}

std::string cell_of(const RankLane& lane, const Column& column) {
  const auto found = lane.cells().find(column);
  return found == lane.cells().end() ? "" : found->second;
}

/// Columns that stand side by side, and how wide each is.
using Block = std::vector<std::pair<Column, std::size_t>>;

std::vector<Block> blocks_of(const std::vector<RankLane>& lanes) {
  std::map<Column, std::size_t> widths;
  for (const RankLane& lane : lanes) {
    for (const auto& [column, cell] : lane.cells()) {
      widths[column] = std::max({widths[column], cell.size(), title_of(column).size()});
    }
  }
  constexpr std::size_t kNames = 10, kBetween = 3;
  std::vector<Block> blocks;
  std::size_t taken = kLineWidth;
  for (const auto& [column, width] : widths) {
    if (taken + kBetween + width > kLineWidth) {
      blocks.emplace_back();
      taken = kNames;
    }
    blocks.back().emplace_back(column, width);
    taken += kBetween + width;
  }
  if (blocks.empty()) blocks.emplace_back();  // nobody does anything
  return blocks;
}

std::string line_of(const std::string& name, const Block& block,
                    const std::function<std::string(const Column&)>& cell) {
  std::string line = fmt::format("{:<10}", name);
  for (const auto& [column, width] : block) line += fmt::format("{:<{}}   ", cell(column), width);
  line.erase(line.find_last_not_of(' ') + 1);
  if (line.size() > kLineWidth) line = line.substr(0, kLineWidth) + std::string(kMoreCells);
  return line;
}

std::string keys_text(const std::vector<std::int64_t>& keys) {
  if (keys.empty()) return "none";
  const bool in_a_row = keys.back() - keys.front() + 1 == std::ssize(keys);
  if (keys.size() == 1) return fmt::format("{}", keys.front());
  if (in_a_row) return fmt::format("{}-{}", keys.front(), keys.back());
  std::string text;
  for (const std::int64_t key : keys) text += (text.empty() ? "" : ",") + std::to_string(key);
  return text.size() <= 12 ? text : fmt::format("{},…,{}", keys.front(), keys.back());
}

/// The exact number and the one got, with three digits, or as many as show that they differ.
std::string told_text(const std::optional<verify::Told>& told) {
  if (!told) return fmt::format("{:>9}{:>9}", "", "");
  const auto text = [](double x, int digits) {
    return std::isnan(x) ? std::string("NaN") : fmt::format("{:.{}g}", x, digits);
  };
  constexpr int kMostDigits = 6;
  int digits = 3;
  while (digits < kMostDigits && text(told->exact, digits) == text(told->got, digits)) ++digits;
  if (text(told->exact, digits) == text(told->got, digits)) digits = 3;
  return fmt::format("{:>9}{:>9}", text(told->exact, digits), text(told->got, digits));
}

std::string weight_words(const verify::RowStep& step) {
  if (!step.weight) return "";
  switch (verify::softmax_mark(step.weight->got, step.weight->exact)) {
    case '0':
      return "lost";
    case '+':
      return "more";
    case '-':
      return "less";
    case '!':
      return "hidden";
    case '?':
      return "NaN";
    default:
      return "";
  }
}

std::string row_title(const verify::WrongRow& row) {
  std::string text = fmt::format("query {} (rank {}", row.at.token, row.rank);
  if (row.at.head > 0) text += fmt::format(", head {}", row.at.head);
  if (row.at.batch > 0) text += fmt::format(", batch {}", row.at.batch);
  return text + "), chunk by chunk: what it would be without the chunks after, and their weights";
}

std::vector<std::string> row_lines(const verify::WrongRow& row) {
  std::vector<std::string> lines = {
      row_title(row), fmt::format("{:<22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}", "",
                                  fmt::format("o[{}]", row.at.tensor == "o" ? row.at.channel : 0),
                                  "found", "lse", "found", "weight", "found")};
  bool is_wrong = false;
  int number = 0;
  for (const verify::RowStep& step : row.steps) {
    const std::string title =
        fmt::format("step {} chunk {} keys {}", number++, step.owner, keys_text(step.keys));
    std::string line = fmt::format("{:<22}{}{}{}", title, told_text(step.o), told_text(step.lse),
                                   told_text(step.weight));
    std::string words = weight_words(step);
    if (step.wrong && !is_wrong) words += words.empty() ? "first wrong" : ", first wrong";
    is_wrong = is_wrong || step.wrong;
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line + (words.empty() ? "" : "  <- " + words));
  }
  lines.push_back(fmt::format("{:<22}{}{}", "in the end", told_text(row.o), told_text(row.lse)));
  return lines;
}

/// The ranks that are drawn: those around the rank with the finding.
struct RankWindow {
  std::size_t first = 0, end = 0;
};

RankWindow window_of(const verify::Retelling& told, std::size_t most) {
  const std::size_t ranks = told.ranks.size(), count = std::min(ranks, most - 1);
  const int focus = told.seen ? told.seen->rank : told.row ? told.row->rank : 0;
  const std::size_t before = static_cast<std::size_t>(std::max(focus - 1, 0));
  const std::size_t first = std::min(before, ranks - count);
  return {first, first + count};
}

std::vector<std::string> broken_in_two(const std::string& line) {
  const std::size_t at =
      line.size() <= kLineWidth ? std::string::npos : line.rfind(' ', kLineWidth);
  if (at == std::string::npos) return {line};
  return {line.substr(0, at), "  " + line.substr(at)};
}

bool has_empty_chunk(const verify::Retelling& told) {
  return std::ranges::any_of(told.ranks, [](const std::vector<TraceEvent>& events) {
    return std::ranges::any_of(events, [](const TraceEvent& event) {
      return event.owner == kNobody && event.kind != TraceKind::compute;
    });
  });
}

}  // namespace

std::vector<std::string> lane_lines(const verify::Retelling& told, std::size_t most) {
  if (told.ranks.empty()) return {};
  const RankWindow window = window_of(told, most);
  std::vector<RankLane> lanes;
  for (std::size_t rank = window.first; rank < window.end; ++rank) {
    lanes.emplace_back(told.ranks[rank], told.repeats_chunks);
    const bool is_seen = told.seen && told.seen->step >= 0 && std::cmp_equal(told.seen->rank, rank);
    if (is_seen) lanes.back().mark({Pass::forward, told.seen->step});
  }
  const std::vector<Block> blocks = blocks_of(lanes);
  std::vector<std::string> lines;
  for (const Block& block : blocks) {
    if (lines.size() + 1 + lanes.size() > most) {
      lines.emplace_back("…");
      return lines;
    }
    if (!block.empty()) lines.push_back(line_of("", block, title_of));
    for (std::size_t n = 0; n < lanes.size(); ++n) {
      const std::size_t rank = window.first + n;
      lines.push_back(line_of(fmt::format("rank {}", rank), block,
                              [&](const Column& column) { return cell_of(lanes[n], column); }));
      if (&block != &blocks.back() || !told.failed.empty()) continue;
      for (const int owner : lanes[n].missing(told.needed[rank])) {
        lines.back() += fmt::format("  <- never [{}]", owner);
      }
    }
  }
  return lines;
}

std::vector<std::string> retelling_lines(const Shown& shown) {
  const verify::Retelling& told = shown.told;
  std::vector<std::string> lines =
      pair_rows(shown.of, told.row ? std::optional(told.row->at) : shown.marked, kMostMapRows);
  const std::vector<std::string> lanes = lane_lines(told, kMostLaneLines);
  std::vector<std::string> right;
  if (shown.right) right = lane_lines(*shown.right, kMostLaneLines);
  if (right == lanes) right.clear();
  if (!lanes.empty() || !right.empty()) add_all(lines, {"", kLegend});
  if (has_empty_chunk(told)) lines.emplace_back(kOfEmptyChunks);
  add_all(lines, lanes);
  if (told.seen) add_all(lines, broken_in_two("!  " + told.seen->where));
  if (!right.empty()) lines.emplace_back("and as it should be:");
  add_all(lines, right);
  lines.emplace_back();
  if (told.row) {
    add_all(lines, row_lines(*told.row));
  } else if (told.failed.empty()) {
    lines.emplace_back("o and lse of this run lie within their bounds");
  } else {
    lines.push_back("no answer: " + told.failed.substr(0, kLineWidth - 20) +
                    std::string(kMoreCells));
  }
  if (lines.size() > kMostPictureLines) {
    lines.resize(kMostPictureLines - 1);
    lines.emplace_back("…");
  }
  return lines;
}

}  // namespace ringlab::report
