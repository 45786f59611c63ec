#include "cli/model/plan_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cli/inputs/run_options.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/model/model_charts.h"
#include "cli/model/model_options.h"
#include "cli/model/model_question.h"
#include "cli/model/plan_parts.h"
#include "cli/report/human.h"
#include "reference/core/error.h"
#include "reference/model/training/step_planner.h"

namespace ringlab::cli {
namespace {

constexpr std::size_t kShown = 8;

using model::StepChoice;

Json choice_json(const ModelQuestion& question, const StepChoice& choice) {
  const model::Split& split = choice.way.split;
  Json json = {{"context", split.context},
               {"by_heads", choice.way.by_heads},
               {"tensor", split.tensor},
               {"stages", split.stages},
               {"replicas", split.replicas},
               {"keep", keep_word(choice.way.kept)},
               {"shard", shard_word(choice.way.sharded)},
               {"schedule", choice.way.by_nodes ? "double" : "ring"},
               {"seconds", choice.time.total()},
               {"utilisation", utilisation(question, choice.time.total())},
               {"memory_bytes", choice.memory.total()}};
  json["memory"] = parts_json(parts_of(choice.memory));
  json["time"] = parts_json(parts_of(choice.time));
  return json;
}

std::vector<StepChoice> weighed(const ModelQuestion& question) {
  Progress progress("weighing");
  return model::weigh_training(question.training, question.wish, question.machine, largest_memory,
                               [&](std::size_t done, std::size_t all) {
                                 progress.update(static_cast<int>(done), static_cast<int>(all),
                                                 "weighing splits");
                               });
}

/// The best way of each split.
void print_splits(const ModelQuestion& question, const std::vector<StepChoice>& choices,
                  Output& output) {
  TextTable table({{"context", Align::right},
                   {"tensor", Align::right},
                   {"stages", Align::right},
                   {"replicas", Align::right},
                   {"kept"},
                   {"cut"},
                   {"step", Align::right},
                   {"utilisation", Align::right},
                   {"memory", Align::right},
                   {""}});
  std::vector<model::Split> shown;
  for (const StepChoice& choice : choices) {
    const model::Split& split = choice.way.split;
    if (shown.size() == kShown || std::ranges::find(shown, split) != shown.end()) continue;
    shown.push_back(split);
    table.add({fmt::format("{}", split.context), fmt::format("{}", split.tensor),
               fmt::format("{}", split.stages), fmt::format("{}", split.replicas),
               keep_word(choice.way.kept), shard_word(choice.way.sharded),
               report::human_seconds(choice.time.total()),
               report::human_percent(utilisation(question, choice.time.total())),
               bytes_text(choice.memory.total()),
               holds(question, choice) ? "" : "too much memory"});
  }
  output.print("{}", table.text());
}

Json print_reasons(const ModelQuestion& question, const std::vector<StepChoice>& choices,
                   Output& output) {
  const auto number = [](int value) { return fmt::format("{}", value); };
  const auto of = [&](const auto& part, const auto& words) {
    return reason_for(choices, question.machine.memory_bytes, part, words);
  };
  using Way = model::StepWay;
  return print_sentences({{"context", of([](const Way& way) { return way.split.context; }, number)},
                          {"by-heads", of([](const Way& way) { return way.by_heads; }, number)},
                          {"tensor", of([](const Way& way) { return way.split.tensor; }, number)},
                          {"stages", of([](const Way& way) { return way.split.stages; }, number)},
                          {"keep", of([](const Way& way) { return way.kept; }, keep_word)},
                          {"shard", of([](const Way& way) { return way.sharded; }, shard_word)}},
                         output);
}

[[noreturn]] void refuse(const ModelQuestion& question, const std::vector<StepChoice>& choices) {
  if (choices.empty()) {
    throw_usage_error(
        {"plan", fmt::format("numbers whose product is {} devices", question.wish.devices),
         "none that fit the model, the sequences and nodes",
         "Heads of keys are cut over 1, 2, 4 … devices of a node, sequences over replicas."});
  }
  const StepChoice& least = choices.front();
  throw_environment_error(
      {"plan", fmt::format("a split that fits into {:.4g} GB", question.machine.memory_bytes / 1e9),
       fmt::format("{:.4g} GB with {}", least.memory.total() / 1e9, split_options(least.way)),
       "Ask for more --devices, or fewer --tokens."});
}

/// Prints the choice and adds it to `json`: its times, memory, reasons and longest sequence.
void print_choice(const ModelQuestion& question, const std::vector<StepChoice>& choices, Json& json,
                  Output& output) {
  const StepChoice& best = choices.front();
  const double seconds = best.time.total();
  output.print("\nchoice        {}\n", split_options(best.way));
  const auto expected = expected_seconds(question, best);
  json["expected_seconds"] = expected ? Json(*expected) : Json(nullptr);
  if (expected) {
    output.print("expected      {} on real devices, {} of their peak\n",
                 report::human_seconds(*expected),
                 report::human_percent(utilisation(question, *expected)));
  }
  json["reasons"] = print_reasons(question, choices, output);
  const auto links = with_links(question, best, 0.5);
  json["what_if"] = print_half_links(links, split_options(links.best.way),
                                     choice_json(question, links.best), output);
  print_parts("memory of a device", parts_of(best.memory), bytes_text, output);
  print_parts("time of a step", parts_of(best.time), report::human_seconds, output);
  const double hours = hours_per_billion_tokens(question, expected.value_or(seconds));
  json["device_hours_per_billion_tokens"] = hours;
  json["longest_context"] =
      model::longest_context(question.training, question.wish, question.machine, largest_memory);
  output.print("\n");
  if (best.way.ring() <= run_option("ranks").most) {
    output.print("look at it    {}\n", ring_words(question, best.way));
  }
  output.print("device-hours  {:.3g} for a billion tokens{}\n", hours,
               expected ? ", by the expected time" : "");
  output.print("longest       {} tokens of one sequence fit, to a sixteenth\n",
               report::human_count(json["longest_context"]));
}

}  // namespace

int plan_model(Arguments& arguments) {
  Output output(arguments);
  const ModelQuestion question = take_model_question(arguments);
  const std::optional<std::string> html = take_file(arguments, "html");
  arguments.reject_unused();
  output.print_configuration(configuration_of(question, machine_figures(question.machine)));
  const std::vector<StepChoice> choices = weighed(question);
  Json document = {{"configuration", configuration_of(question, machine_json(question.machine))},
                   {"ways", Json::array()},
                   {"choice", nullptr}};
  for (const StepChoice& choice : choices) {
    document["ways"].push_back(choice_json(question, choice));
  }
  if (!choices.empty()) print_splits(question, choices, output);
  if (choices.empty() || !holds(question, choices.front())) {
    output.finish("plan", document, kNoResults);  // the refusal has the code
    refuse(question, choices);
  }
  document["choice"] = choice_json(question, choices.front());
  print_choice(question, choices, document["choice"], output);
  if (html) {
    output.show(*html, split_options(choices.front().way), drawn_step(question, choices.front()));
  }
  return output.finish("plan", document);
}

}  // namespace ringlab::cli
