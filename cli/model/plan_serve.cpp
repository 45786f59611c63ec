#include "cli/model/plan_serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "cli/inputs/run_options.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/model/model_options.h"
#include "cli/model/serve_charts.h"
#include "cli/model/serve_question.h"
#include "cli/report/human.h"
#include "reference/core/error.h"
#include "reference/model/closed_forms.h"

namespace ringlab::cli {
namespace {

constexpr std::size_t kShownWays = 8;

using model::Passed;
using model::ServeChoice;

double passed_by(const ServeQuestion& question, const ServeChoice& choice, Passed passed) {
  return model::passed_bytes(question.serving, {choice.way.split, passed, choice.way.by_heads});
}

Json choice_json(const ServeQuestion& question, const ServeChoice& choice) {
  const model::Split& split = choice.way.split;
  return {{"context", split.context},
          {"by_heads", choice.way.by_heads},
          {"tensor", split.tensor},
          {"stages", split.stages},
          {"pass", pass_word(choice.way.passed)},
          {"seconds", choice.time.total()},
          {"tokens_per_second", model::tokens_per_second(question.serving, choice.time.total())},
          {"keys_bytes", passed_by(question, choice, Passed::keys)},
          {"queries_bytes", passed_by(question, choice, Passed::queries)},
          {"memory_bytes", choice.memory.total()},
          {"memory", parts_json(parts_of(choice.memory))},
          {"time", parts_json(parts_of(choice.time))}};
}

std::vector<ServeChoice> weighed(const ServeQuestion& question) {
  Progress progress("weighing");
  return model::weigh_serving(question.serving, question.wish, question.machine, largest_memory,
                              [&](std::size_t done, std::size_t all) {
                                progress.update(static_cast<int>(done), static_cast<int>(all),
                                                "weighing splits");
                              });
}

void print_ways(const ServeQuestion& question, const std::vector<ServeChoice>& choices,
                Output& output) {
  TextTable table({{"context", Align::right},
                   {"by heads", Align::right},
                   {"tensor", Align::right},
                   {"stages", Align::right},
                   {"passed"},
                   {question.serving.decodes() ? "token" : "first token", Align::right},
                   {"tokens/s", Align::right},
                   {"memory", Align::right},
                   {""}});
  for (std::size_t at = 0; at < std::min(choices.size(), kShownWays); ++at) {
    const ServeChoice& choice = choices[at];
    const model::Split& split = choice.way.split;
    const double seconds = choice.time.total();
    table.add({fmt::format("{}", split.context), fmt::format("{}", choice.way.by_heads),
               fmt::format("{}", split.tensor), fmt::format("{}", split.stages),
               passed_words(choice.way), report::human_seconds(seconds),
               fmt::format("{:.4g}", model::tokens_per_second(question.serving, seconds)),
               bytes_text(choice.memory.total()),
               choice.memory.total() <= question.memory_bytes() ? "" : "too much memory"});
  }
  output.print("{}", table.text());
}

/// The reason to pass keys, or queries: the bytes of a layer either way, and the other way's time.
std::string pass_reason(const ServeQuestion& question, const std::vector<ServeChoice>& choices) {
  const ServeChoice& best = choices.front();
  if (best.way.ring() == 1) return "";
  const std::string keys = "keys and values " + bytes_text(passed_by(question, best, Passed::keys));
  const std::string queries =
      "queries and answers " + bytes_text(passed_by(question, best, Passed::queries));
  const bool sends_keys = best.way.passed == Passed::keys;
  std::string sentence = fmt::format("{}: a layer sends {}, not {}", pass_word(best.way.passed),
                                     sends_keys ? keys : queries, sends_keys ? queries : keys);
  const auto other = std::ranges::find_if(choices, [&](const ServeChoice& choice) {
    return choice.way.split == best.way.split && choice.way.by_heads == best.way.by_heads &&
           choice.way.passed != best.way.passed;
  });
  if (other == choices.end()) return sentence;
  const double ratio = other->time.total() / best.time.total();
  return sentence + (ratio > 1 + model::kAsFast
                         ? fmt::format(", which takes {:.3g} times as long", ratio)
                         : ", which is as fast");
}

Json print_reasons(const ServeQuestion& question, const std::vector<ServeChoice>& choices,
                   Output& output) {
  using Way = model::ServeWay;
  const auto number = [](int value) { return fmt::format("{}", value); };
  const auto of = [&](const auto& part) {
    return reason_for(choices, question.memory_bytes(), part, number);
  };
  return print_sentences({{"context", of([](const Way& way) { return way.split.context; })},
                          {"by-heads", of([](const Way& way) { return way.by_heads; })},
                          {"tensor", of([](const Way& way) { return way.split.tensor; })},
                          {"stages", of([](const Way& way) { return way.split.stages; })},
                          {"pass", pass_reason(question, choices)}},
                         output);
}

[[noreturn]] void refuse(const ServeQuestion& question, const std::vector<ServeChoice>& choices) {
  if (choices.empty()) {
    throw_usage_error(
        {"plan", fmt::format("numbers whose product is {} devices", question.wish.split.devices),
         "none that fit the model and nodes",
         "Heads of keys are cut over 1, 2, 4 … devices of a node; a rank of a ring has two keys."});
  }
  const ServeChoice& least = choices.front();
  throw_environment_error(
      {"plan", fmt::format("a split that fits into {:.4g} GB", question.memory_bytes() / 1e9),
       fmt::format("{:.4g} GB with {}", least.memory.total() / 1e9,
                   serve_options(question, least.way)),
       "Ask for more --devices, or fewer --tokens or --sequences."});
}

/// Figures besides those of the choice itself, into `json` and the output.
void print_rest(const ServeQuestion& question, const ServeChoice& best, Json& json,
                Output& output) {
  const model::Serving& serving = question.serving;
  output.print("\ntokens/s      {:.4g}{}\n", json["tokens_per_second"].get<double>(),
               serving.sequences > 1 ? fmt::format(" of {} sequences", serving.sequences) : "");
  if (!serving.decodes()) {
    json["next_token_seconds"] = next_token_seconds(question, best.way);
    output.print("next tokens   {} each, on the same devices\n",
                 report::human_seconds(json["next_token_seconds"]));
    const double below =
        model::pass_q_below(model::serve_problem(serving, best.way, false), serving.cached);
    json["queries_pay_below_tokens"] = below;
    if (serving.cached > 0) {
      output.print("criterion     queries send less than keys and values below {} new tokens\n",
                   report::human_count(static_cast<std::int64_t>(std::ceil(below))));
    }
  }
  json["longest_context"] =
      model::longest_served(serving, question.wish, question.machine, largest_memory);
  const bool behind_cached = !serving.decodes() && serving.cached > 0;
  output.print(
      "longest       {} tokens of {} fit{}, to a sixteenth\n",
      report::human_count(json["longest_context"]),
      serving.sequences == 1 ? "one sequence" : "each sequence",
      behind_cached ? fmt::format(", {} of them cached", report::human_count(serving.cached)) : "");
}

void print_choice(const ServeQuestion& question, const std::vector<ServeChoice>& choices,
                  Json& json, Output& output) {
  const ServeChoice& best = choices.front();
  output.print("\nchoice        {}\n", serve_options(question, best.way));
  const auto expected = expected_seconds(question, best.way);
  json["expected_seconds"] = expected ? Json(*expected) : Json(nullptr);
  if (expected) {
    output.print("expected      {} on real devices\n", report::human_seconds(*expected));
  }
  json["reasons"] = print_reasons(question, choices, output);
  if (best.way.split.devices() > 1) {
    const auto links = with_links(question, best, 0.5);
    json["what_if"] = print_half_links(links, serve_options(question, links.best.way),
                                       choice_json(question, links.best), output);
  }
  print_parts("memory of a device", parts_of(best.memory), bytes_text, output);
  print_parts(time_name(question), parts_of(best.time), report::human_seconds, output);
  print_rest(question, best, json, output);
}

int plan_serve(Arguments& arguments, ServeQuestion (*take)(Arguments&)) {
  Output output(arguments);
  const ServeQuestion question = take(arguments);
  const std::optional<std::string> html = take_file(arguments, "html");
  arguments.reject_unused();
  output.print_configuration(configuration_of(question, machine_figures(question.machine)));
  const std::vector<ServeChoice> choices = weighed(question);
  Json document = {{"configuration", configuration_of(question, machine_json(question.machine))},
                   {"ways", Json::array()},
                   {"choice", nullptr}};
  for (const ServeChoice& choice : choices) {
    document["ways"].push_back(choice_json(question, choice));
  }
  if (!choices.empty()) print_ways(question, choices, output);
  if (choices.empty() || choices.front().memory.total() > question.memory_bytes()) {
    output.finish("plan", document, kNoResults);  // the refusal has the code
    refuse(question, choices);
  }
  document["choice"] = choice_json(question, choices.front());
  print_choice(question, choices, document["choice"], output);
  if (html) {
    output.show(*html, serve_options(question, choices.front().way),
                drawn_serving(question, choices.front()));
  }
  return output.finish("plan", document);
}

}  // namespace

int plan_prefill(Arguments& arguments) { return plan_serve(arguments, take_prefill); }

int plan_decode(Arguments& arguments) { return plan_serve(arguments, take_decode); }

}  // namespace ringlab::cli
