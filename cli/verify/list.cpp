// `ringlab list`: what can be run and verified.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "cli/inputs/subjects.h"
#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/text_table.h"
#include "property_tests/envelope/envelope.h"
#include "property_tests/subject_list.h"

namespace ringlab::cli {
namespace {

using verify::Ability;

// A column of the table: a word, its meaning, and the ability that it tells of; none for modifiers,
// of which a subject may know some.
struct Word {
  const char* word;
  const char* meaning;
  std::optional<Ability> ability = {};
};

constexpr std::array<Word, 12> kWords = {{
    {"ranks", "runs on several ranks", Ability::many_ranks},
    {"ring", "K/V travel neighbour to neighbour", Ability::ring_traffic},
    {"skips", "masked-out blocks are not computed", Ability::skips_empty_blocks},
    {"slots", "--slots: places for chunks beside its own", Ability::prefetches},
    {"threads", "--threads: several of each rank", Ability::threads},
    {"schedules", "--schedule, --wire, --integrity", Ability::schedules},
    {"backward", "--backward: gradients of q, k and v", Ability::backward},
    {"modifiers", "--softcap, --alibi, --sinks, --dropout, or those of them"},
    {"trace", "--trace: what each rank did when", Ability::traces},
    {"cuda", "--device cuda, in builds that have it", Ability::cuda},
    {"counts", "bytes and memory are measured", Ability::counts_traffic},
    {"same-bits", "equal from run to run", Ability::deterministic},
}};

constexpr std::array<std::string_view, 4> kKindsOfClaims = {"dtype", "mask", "scale", "modifiers"};

std::vector<Column> columns() {
  std::vector<Column> columns = {{"subject"}};
  for (const Word& word : kWords) columns.push_back({word.word});
  columns.push_back({"dtypes"});
  return columns;
}

// Capabilities to show: subjects that execute schedules have slots, too.
verify::Capabilities with_slots(verify::Capabilities can) {
  can.set(Ability::prefetches, verify::honours(can, Feature::slots));
  return can;
}

std::vector<std::string> modifier_names(const verify::ModifierAbilities& can) {
  std::vector<std::string> names;
  for (const ModifierKind kind : kModifierKinds) {
    if (can.knows(kind)) names.emplace_back(modifier_word(kind));
  }
  return names;
}

std::string cell(const Word& word, const verify::Capabilities& can) {
  if (!(word.ability ? can.has(*word.ability) : can.modifiers.any())) return "-";
  if (word.ability || can.modifiers == verify::kAllModifiers) return word.word;
  return fmt::format("{}", fmt::join(modifier_names(can.modifiers), " "));
}

std::vector<std::string> row(const std::string& name, const verify::Capabilities& can,
                             const std::vector<std::string>& dtypes) {
  std::vector<std::string> cells = {name};
  for (const Word& word : kWords) cells.push_back(cell(word, can));
  cells.push_back(fmt::format("{}", fmt::join(dtypes, " ")));
  return cells;
}

std::string legend() {
  TextTable table({{"word"}, {"meaning"}});
  for (const Word& word : kWords) table.add({word.word, word.meaning});
  return table.text();
}

// A table of claims of a library of others, "mask causal" and "mask window" as one row: "mask",
// "causal, window".
std::string claims_text(const verify::Subject& subject) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& claim : verify::claimed_not_tried(subject.can, {})) {
    const std::size_t space = claim.find(' ');
    const bool is_kind = std::ranges::count(kKindsOfClaims, claim.substr(0, space)) == 1;
    const std::string kind = is_kind ? claim.substr(0, space) : "more";
    const std::string word = is_kind ? claim.substr(space + 1) : claim;
    const auto known = std::ranges::find(rows, kind, [](const auto& row) { return row.front(); });
    if (known == rows.end()) {
      rows.push_back({kind, word});
    } else {
      known->back() += ", " + word;
    }
  }
  TextTable table({{"claim"}, {"of " + subject.name}});
  for (std::vector<std::string>& row : rows) table.add(std::move(row));
  return "\n" + table.text();
}

// The dtypes of kernels on devices, in builds that have them.
std::vector<std::string> dtypes_on_devices(const verify::Subject& subject) {
  std::vector<std::string> names;
  if (!subject.can.has(Ability::cuda)) return names;
  for (const DType dtype : subject.can_on(DeviceKind::cuda).dtypes) {
    names.emplace_back(dtype_info(dtype).name);
  }
  return names;
}

Json device_names(const verify::Capabilities& can) {
  Json names = Json::array();
  if (can.has(Ability::cpu)) names.push_back("cpu");
  if (can.has(Ability::cuda)) names.push_back("cuda");
  return names;
}

Json subject_json(const verify::Subject& subject, const std::vector<std::string>& dtypes) {
  const verify::Capabilities& can = subject.can;
  Json json = {{"name", subject.name},
               {"title", subject.title},
               {"dtypes", dtypes},
               {"slots", verify::honours(can, Feature::slots)},
               {"modifiers", can.modifiers.any()},
               {"modifier_kinds", modifier_names(can.modifiers)},
               {"dtypes_on_devices", dtypes_on_devices(subject)},
               {"devices", device_names(can)},
               {"claims", verify::claimed_not_tried(can, {})}};
  using enum Ability;
  for (const Ability ability :
       {many_ranks, counts_traffic, masked_may_be_nan, ring_traffic, schedules, backward,
        skips_empty_blocks, threads, traces, lse, deterministic}) {
    json[verify::ability_word(ability)] = can.has(ability);
  }
  return json;
}

std::vector<verify::Subject> subjects_to_list(Arguments& arguments) {
  std::vector<verify::Subject> subjects = subjects_named(arguments);
  if (!arguments.operands().empty()) return subjects;
  subjects.insert(subjects.begin(), verify::reference_subject());
  for (verify::Subject& vendor : verify::vendor_subjects()) subjects.push_back(std::move(vendor));
  return subjects;
}

int list(Arguments& arguments) {
  Output output(arguments);
  const std::vector<verify::Subject> chosen = subjects_to_list(arguments);
  arguments.reject_unused();
  TextTable abilities(columns());
  TextTable ideas({{"subject"}, {"what it is"}});
  Json subjects = Json::array();
  std::string claims;
  for (const verify::Subject& subject : chosen) {
    std::vector<std::string> dtypes;
    for (const DType dtype : subject.can.dtypes) dtypes.emplace_back(dtype_info(dtype).name);
    abilities.add(row(subject.name, with_slots(subject.can), dtypes));
    ideas.add({subject.name, subject.title});
    if (subject.can.has(Ability::foreign)) claims += claims_text(subject);
    subjects.push_back(subject_json(subject, dtypes));
  }
  output.print("{}\n{}\n{}{}", ideas.text(), abilities.text(), legend(), claims);
  return output.finish("list", {{"subjects", subjects}});
}

}  // namespace

Command list_command() {
  Command command{"list", "every subject that can be run and verified, with its capabilities"};
  constexpr int kMostSubjects = 1000;
  command.operands = "[SUBJECT…]";
  command.max_operands = kMostSubjects;
  command.options = {json_option()};
  command.examples = {"ringlab list", "ringlab list --json subjects.json",
                      "ringlab list ./libattention.so"};
  command.more = "Subjects may be plugins: `ringlab verify --help` says what those are.";
  command.run = list;
  return command;
}

}  // namespace ringlab::cli
