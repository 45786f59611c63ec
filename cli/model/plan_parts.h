// Answers of plans of whole models: parts of memory and time as bars, and reasons.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/line/output.h"
#include "cli/report/human.h"
#include "reference/model/planner.h"

namespace ringlab::cli {

/// human_bytes() of a computed number.
std::string bytes_text(double bytes);

/// Named parts, also empty ones.
using Parts = std::vector<std::pair<std::string, double>>;

/// Prints parts, each with its share as a bar; leaves out empty ones.
void print_parts(const std::string& title, const Parts& parts,
                 const std::function<std::string(double)>& human, Output& output);

/// Parts by their names.
Json parts_json(const Parts& parts);

/// The best other values of one part of the first choice, in a sentence; empty where there is no
/// other. `part` gives the value of a way, `words` its text.
template <class Choice, class Part, class Words>
std::string reason_for(const std::vector<Choice>& choices, double memory_bytes, const Part& part,
                       const Words& words) {
  std::vector<std::string> others;
  std::vector<decltype(part(choices.front().way))> told = {part(choices.front().way)};
  for (const Choice& choice : choices) {
    const auto value = part(choice.way);
    if (std::ranges::find(told, value) != told.end() || told.size() > 3) continue;
    told.push_back(value);
    const double ratio = choice.time.total() / choices.front().time.total();
    if (choice.memory.total() > memory_bytes) {
      others.push_back(fmt::format("{} holds {}, which does not fit", words(value),
                                   bytes_text(choice.memory.total())));
    } else if (ratio < 1 + model::kAsFast) {
      others.push_back(fmt::format("{} is as fast", words(value)));
    } else {
      others.push_back(fmt::format("{} takes {:.3g} times as long", words(value), ratio));
    }
  }
  if (others.empty()) return "";
  return fmt::format("{}: {}", words(part(choices.front().way)), fmt::join(others, ", "));
}

/// A choice with faster or slower links: its seconds, and the best choice then.
template <class Choice>
struct OtherLinks {
  double seconds = 0;
  Choice best = {};
  /// True if the choice is still as good as any.
  bool same = true;
};

/// Prints the choice and the best one with links half as fast, and returns them as JSON. `options`
/// are the words of the best way then, `best` its JSON.
template <class Choice>
Json print_half_links(const OtherLinks<Choice>& links, const std::string& options, Json best,
                      Output& output) {
  output.print("what if       with links half as fast: {}{}\n",
               report::human_seconds(links.seconds),
               links.same ? ""
                          : fmt::format(", and {} then with {}",
                                        report::human_seconds(links.best.time.total()), options));
  return {{{"change", "links half as fast"},
           {"seconds", links.seconds},
           {"same_choice", links.same},
           {"best", std::move(best)}}};
}

/// Prints each part's sentence, but for empty ones.
Json print_sentences(const std::vector<std::pair<std::string, std::string>>& reasons,
                     Output& output);

}  // namespace ringlab::cli
