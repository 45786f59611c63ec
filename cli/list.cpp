// `ringlab list`: what can be run and verified.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/text_table.h"
#include "property_tests/subject.h"

namespace ringlab::cli {
namespace {

std::vector<std::string> capability_words(const verify::Capabilities& can) {
  std::vector<std::string> words;
  if (can.many_ranks) words.push_back("ranks");
  if (can.ring_traffic) words.push_back("ring");
  if (can.skips_empty_blocks) words.push_back("skips");
  if (can.counts_traffic) words.push_back("counts");
  if (can.deterministic) words.push_back("same-bits");
  return words;
}

Json subject_json(const verify::Subject& subject, const std::vector<std::string>& dtypes) {
  const verify::Capabilities& can = subject.can;
  return {{"name", subject.name},
          {"title", subject.title},
          {"dtypes", dtypes},
          {"many_ranks", can.many_ranks},
          {"counts_traffic", can.counts_traffic},
          {"masked_may_be_nan", can.masked_may_be_nan},
          {"ring_traffic", can.ring_traffic},
          {"skips_empty_blocks", can.skips_empty_blocks},
          {"deterministic", can.deterministic}};
}

int list(Arguments& arguments) {
  Output output(arguments);
  arguments.reject_unused();
  TextTable table({{"subject"}, {"dtypes"}, {"can"}, {"what it is"}});
  Json subjects = Json::array();
  for (const verify::Subject& subject : verify::all_subjects()) {
    std::vector<std::string> dtypes;
    for (const DType dtype : subject.can.dtypes) dtypes.emplace_back(dtype_info(dtype).name);
    table.add({subject.name, fmt::format("{}", fmt::join(dtypes, " ")),
               fmt::format("{}", fmt::join(capability_words(subject.can), " ")), subject.title});
    subjects.push_back(subject_json(subject, dtypes));
  }
  output.write(table.text());
  output.write(
      "\nranks: runs on several ranks · ring: K/V travel neighbour to neighbour · skips: "
      "masked-out "
      "blocks are not computed\ncounts: bytes and memory are measured · same-bits: equal from run "
      "to "
      "run\n");
  output.finish("list", {{"subjects", subjects}});
  return 0;
}

}  // namespace

Command list_command() {
  Command command{"list", "every subject that can be run and verified, with its capabilities"};
  command.options = {json_option()};
  command.examples = {"ringlab list", "ringlab list --json subjects.json"};
  command.run = list;
  return command;
}

}  // namespace ringlab::cli
