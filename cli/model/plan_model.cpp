#include "cli/model/plan_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cli/inputs/run_options.h"
#include "cli/line/progress.h"
#include "cli/line/text_table.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"
#include "reference/core/error.h"
#include "reference/model/training/step_planner.h"
#include "reference/model/training/transformer_file.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kTokens = 131072, kStepTokens = std::int64_t{1} << 22;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31, kMostDevices = 1 << 17;
constexpr std::size_t kShown = 8;
constexpr double kBillion = 1e9, kHour = 3600;
/// Of the times of other choices: no less is told as none.
constexpr double kAsFast = 1 + model::kAsFast;

using model::Kept;
using model::Sharded;
using model::StepChoice;

constexpr std::array kKeptWords = {std::pair{"everything", Kept::everything},
                                   std::pair{"attention", Kept::attention},
                                   std::pair{"inputs", Kept::inputs}};
constexpr std::array kShardedWords = {std::pair{"optimizer", Sharded::optimizer},
                                      std::pair{"weights", Sharded::weights}};

template <class Words, class Value>
std::string word_for(const Words& words, Value value) {
  return std::ranges::find(words, value, [](const auto& word) { return word.second; })->first;
}

// --- what is asked -------------------------------------------------------------------------------

struct ModelQuestion {
  model::Training training;
  model::SplitWish wish = {};
  model::Machine machine = {};
  std::string machine_words = {};  ///< of the command line, but for the size of nodes
};

model::Transformer transformer_named(const std::string& name) {
  return name.ends_with(".json") ? model::read_transformer(name) : model::find_transformer(name);
}

std::optional<int> take_number(Arguments& arguments, const std::string& name) {
  if (!arguments.given(name)) return std::nullopt;
  return static_cast<int>(arguments.take_integer(name, 1, 1, kMostDevices));
}

template <class Words>
auto take_word(Arguments& arguments, const std::string& name, const Words& words)
    -> std::optional<decltype(words[0].second)> {
  if (!arguments.given(name)) return std::nullopt;
  using Value = std::remove_cvref_t<decltype(words[0].second)>;
  std::vector<std::pair<std::string, Value>> choices(words.begin(), words.end());
  return arguments.take_choice<Value>(name, words[0].second, choices);
}

/// As many as kStepTokens have, but as many for each device where there are enough.
std::int64_t usual_sequences(std::int64_t tokens, std::int64_t devices) {
  const std::int64_t sequences = std::max<std::int64_t>(1, kStepTokens / tokens);
  return sequences > devices ? sequences / devices * devices : sequences;
}

ModelQuestion take_model_question(Arguments& arguments) {
  ModelQuestion question{.training = {.model = transformer_named(*arguments.take_text("model"))}};
  model::Training& training = question.training;
  training.tokens = arguments.take_integer("tokens", kTokens, 2, kMostTokens);
  training.block_tokens =
      arguments.take_integer("block-tokens", training.block_tokens, 0, kMostTokens);
  training.pieces = arguments.take_integer("pieces", 1, 1, training.model.layers);
  model::SplitWish& wish = question.wish;
  wish.devices = static_cast<int>(arguments.take_integer("devices", 8, 1, kMostDevices));
  training.sequences = arguments.take_integer(
      "sequences", usual_sequences(training.tokens, wish.devices), 1, kMostTokens);
  wish.context = take_number(arguments, "context");
  wish.tensor = take_number(arguments, "tensor");
  wish.stages = take_number(arguments, "stages");
  wish.replicas = take_number(arguments, "replicas");
  wish.kept = take_word(arguments, "keep", kKeptWords);
  wish.sharded = take_word(arguments, "shard", kShardedWords);
  Problem problem;
  problem.dtype = DType::bf16;
  problem.shape.head_dim = training.model.head_dim;
  question.machine = take_machine(arguments, problem);
  std::vector<OptionSpec> specs = machine_options();
  std::erase_if(specs, [](const OptionSpec& spec) { return spec.name == "node-ranks"; });
  question.machine_words = given_words(arguments, specs);
  return question;
}

std::string model_words(const model::Transformer& m) {
  std::string words =
      fmt::format("{} layers of {} channels, {} heads ({} of keys) of {}, feed-forward {}",
                  m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.feed_forward);
  if (m.experts > 1) words += fmt::format(" in {} of {} experts", m.experts_per_token, m.experts);
  if (m.windowed_layers > 0) {
    words += fmt::format(", a window of {} in {} layers", m.window, m.windowed_layers);
  }
  return words + fmt::format(", vocabulary {}", m.vocabulary);
}

/// Operations a second of a device's products, as its data sheet has them; attention's where they are
/// not known.
double peak_of(const ModelQuestion& question) {
  const model::Machine& machine = question.machine;
  return machine.product_flops > 0 ? machine.product_flops : machine.forward_flops;
}

Json configuration_of(const ModelQuestion& question, Json machine) {
  const model::Training& training = question.training;
  Json figures = {{"model", training.model.name},
                  {"shape", model_words(training.model)},
                  {"parameters", model::parameter_count(training.model)},
                  {"tokens", training.tokens},
                  {"sequences", training.sequences},
                  {"devices", question.wish.devices},
                  {"products", fmt::format("{:.4g} TFLOP/s", peak_of(question) / model::kTera)}};
  figures.update(machine);
  return figures;
}

// --- the answer ----------------------------------------------------------------------------------

/// Of a step: operations as they are counted, over what the devices could do in its time.
double utilisation(const ModelQuestion& question, double seconds) {
  return model::step_flops(question.training) /
         (seconds * peak_of(question) * question.wish.devices);
}

/// The seconds of a way on the machine as real ones are; nothing where that is not known.
std::optional<double> expected_seconds(const ModelQuestion& question, const StepChoice& choice) {
  const model::Job job =
      model::attention_job(question.training, choice.way, question.machine, false);
  const auto expected = model::as_expected(question.machine, job.problem);
  if (!expected) return std::nullopt;
  const model::RingCost ring =
      model::ring_cost(question.training, choice.way, *expected, largest_memory);
  return model::step_time(question.training, choice.way, ring, *expected).total();
}

std::vector<StepChoice> weighed(const ModelQuestion& question) {
  Progress progress("weighing");
  return model::weigh_training(question.training, question.wish, question.machine, largest_memory,
                               [&](std::size_t done, std::size_t all) {
                                 progress.update(static_cast<int>(done), static_cast<int>(all),
                                                 "weighing splits");
                               });
}

// --- what is told --------------------------------------------------------------------------------

std::string way_words(const model::StepWay& way) {
  const model::Split& split = way.split;
  return fmt::format("--context {} --tensor {} --stages {} --replicas {} --keep {} --shard {}",
                     split.context, split.tensor, split.stages, split.replicas,
                     word_for(kKeptWords, way.kept), word_for(kShardedWords, way.sharded));
}

/// The command that simulates the ring of a layer.
std::string ring_words(const ModelQuestion& question, const model::StepWay& way) {
  const model::Machine seen = model::ring_machine(question.machine, way.split);
  const model::Training& training = question.training;
  const bool windowed = training.model.windowed_layers == training.model.layers;
  const model::Job job = model::attention_job(training, way, seen, windowed);
  const Shape& shape = job.problem.shape;
  const RunOptions& options = job.options;
  return fmt::format(
      "ringlab simulate --tokens {} --heads {} --kv-heads {} --head-dim {} --mask {} --backward "
      "--ranks {} --layout {} --schedule {} --slots {} --node-ranks {}{}",
      shape.q_tokens, shape.q_heads, shape.kv_heads, shape.head_dim, job.problem.mask.text(),
      options.ranks, layout_name(options.layout), schedule_name(schedule_spec(options)),
      options.slots, seen.node_ranks, question.machine_words);
}

std::vector<std::pair<std::string, double>> parts_of(const model::StepMemory& memory) {
  return {{"weights", memory.weights},     {"gradients", memory.gradients},
          {"optimizer", memory.optimizer}, {"kept for backward", memory.kept},
          {"ring at work", memory.ring},   {"layer at work", memory.at_work}};
}

std::vector<std::pair<std::string, double>> parts_of(const model::StepTime& time) {
  return {{"products", time.products},     {"attention", time.attention},
          {"recomputed", time.recomputed}, {"tensor exchange", time.tensor},
          {"waiting stages", time.bubble}, {"weight exchange", time.weights},
          {"optimizer", time.optimizer}};
}

Json choice_json(const ModelQuestion& question, const StepChoice& choice) {
  const model::Split& split = choice.way.split;
  Json json = {{"context", split.context},
               {"tensor", split.tensor},
               {"stages", split.stages},
               {"replicas", split.replicas},
               {"keep", word_for(kKeptWords, choice.way.kept)},
               {"shard", word_for(kShardedWords, choice.way.sharded)},
               {"schedule", choice.way.by_nodes ? "double" : "ring"},
               {"seconds", choice.time.total()},
               {"utilisation", utilisation(question, choice.time.total())},
               {"memory_bytes", choice.memory.total()}};
  for (const auto& [part, bytes] : parts_of(choice.memory)) json["memory"][part] = bytes;
  for (const auto& [part, seconds] : parts_of(choice.time)) json["time"][part] = seconds;
  return json;
}

bool holds(const ModelQuestion& question, const StepChoice& choice) {
  return choice.memory.total() <= question.machine.memory_bytes;
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
               word_for(kKeptWords, choice.way.kept), word_for(kShardedWords, choice.way.sharded),
               report::human_seconds(choice.time.total()),
               report::human_percent(utilisation(question, choice.time.total())),
               report::human_bytes(static_cast<std::int64_t>(choice.memory.total())),
               holds(question, choice) ? "" : "too much memory"});
  }
  output.print("{}", table.text());
}

/// Parts, each with its share as a bar.
template <class Human>
void print_parts(const std::string& title, const std::vector<std::pair<std::string, double>>& parts,
                 const Human& human, Output& output) {
  constexpr double kWidest = 40;
  double all = 0;
  for (const auto& [part, amount] : parts) all += amount;
  TextTable table({{title}, {human(all), Align::right}, {""}});
  for (const auto& [part, amount] : parts) {
    if (amount == 0) continue;
    table.add({part, human(amount),
               std::string(static_cast<std::size_t>(std::max(1.0, kWidest * amount / all)), '#')});
  }
  output.print("\n{}", table.text());
}

/// The best other number or word for one part of the choice, in a sentence.
template <class Part, class Words>
std::string reason_for(const ModelQuestion& question, const std::vector<StepChoice>& choices,
                       const Part& part, const Words& words) {
  std::string sentence = words(part(choices.front().way)) + ": ";
  std::vector<std::string> others;
  std::vector<decltype(part(choices.front().way))> told = {part(choices.front().way)};
  for (const StepChoice& choice : choices) {
    const auto value = part(choice.way);
    if (std::ranges::find(told, value) != told.end() || told.size() > 3) continue;
    told.push_back(value);
    const double ratio = choice.time.total() / choices.front().time.total();
    if (!holds(question, choice)) {
      others.push_back(
          fmt::format("{} holds {}, which does not fit", words(value),
                      report::human_bytes(static_cast<std::int64_t>(choice.memory.total()))));
    } else if (ratio < kAsFast) {
      others.push_back(fmt::format("{} is as fast", words(value)));
    } else {
      others.push_back(fmt::format("{} takes {:.3g} times as long", words(value), ratio));
    }
  }
  if (others.empty()) return "";
  return sentence + fmt::format("{}", fmt::join(others, ", "));
}

Json print_reasons(const ModelQuestion& question, const std::vector<StepChoice>& choices,
                   Output& output) {
  const auto number = [](int value) { return fmt::format("{}", value); };
  const auto of = [&](const auto& part, const auto& words) {
    return reason_for(question, choices, part, words);
  };
  using Way = model::StepWay;
  const std::vector<std::pair<std::string, std::string>> reasons = {
      {"context", of([](const Way& way) { return way.split.context; }, number)},
      {"tensor", of([](const Way& way) { return way.split.tensor; }, number)},
      {"stages", of([](const Way& way) { return way.split.stages; }, number)},
      {"keep", of([](const Way& way) { return way.kept; },
                  [](Kept kept) { return word_for(kKeptWords, kept); })},
      {"shard", of([](const Way& way) { return way.sharded; },
                   [](Sharded cut) { return word_for(kShardedWords, cut); })}};
  Json json = Json::array();
  for (const auto& [part, sentence] : reasons) {
    if (sentence.empty()) continue;
    output.print("{:<13} {}\n", part, sentence);
    json.push_back({{"part", part}, {"sentence", sentence}});
  }
  return json;
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
       fmt::format("{:.4g} GB with {}", least.memory.total() / 1e9, way_words(least.way)),
       "Ask for more --devices, or fewer --tokens."});
}

}  // namespace

std::vector<OptionSpec> plan_model_options() {
  std::string names;
  for (const model::Transformer& model : model::known_transformers()) {
    names += (names.empty() ? "" : ", ") + model.name;
  }
  return {{"model", "NAME",
           "a training step of a whole model: " + names +
               ", or a config.json as Hugging Face's hub has them"},
          {"devices", "D", "devices to split it over (8)"},
          {"sequences", "S", "sequences of --tokens in a step (4194304 tokens in all)"},
          {"context", "P", "devices of a ring; as the next three: what is not said is searched"},
          {"tensor", "T", "devices that share heads and matrices"},
          {"stages", "S", "groups of layers, one after the other"},
          {"pieces", "V", "of each stage, which take turns (1)"},
          {"replicas", "R", "copies with sequences of their own"},
          {"keep", "WHAT", "of a layer, for its backward pass: everything, attention or inputs"},
          {"shard", "WHAT", "over devices with the same weights: optimizer or weights"},
          {"block-tokens", "N", "tokens of feed-forward and logits at a time (4096; 0: all)"}};
}

int plan_model(Arguments& arguments) {
  Output output(arguments);
  const ModelQuestion question = take_model_question(arguments);
  arguments.reject_unused();
  output.print_configuration(configuration_of(question, machine_figures(question.machine)));
  const std::vector<StepChoice> choices = weighed(question);
  Json document = {{"configuration", configuration_of(question, machine_json(question.machine))},
                   {"ways", Json::array()},
                   {"choice", nullptr}};
  for (const StepChoice& choice : choices)
    document["ways"].push_back(choice_json(question, choice));
  if (!choices.empty()) print_splits(question, choices, output);
  if (choices.empty() || !holds(question, choices.front())) {
    output.finish("plan", document);
    refuse(question, choices);
  }
  const StepChoice& best = choices.front();
  Json& json = document["choice"] = choice_json(question, best);
  output.print("\nchoice        {}\n", way_words(best.way));
  json["expected_seconds"] = nullptr;
  if (const auto seconds = expected_seconds(question, best)) {
    json["expected_seconds"] = *seconds;
    output.print("expected      {} on real devices, {} of their peak\n",
                 report::human_seconds(*seconds),
                 report::human_percent(utilisation(question, *seconds)));
  }
  json["reasons"] = print_reasons(question, choices, output);
  print_parts(
      "memory of a device", parts_of(best.memory),
      [](double bytes) { return report::human_bytes(static_cast<std::int64_t>(bytes)); }, output);
  print_parts("time of a step", parts_of(best.time), report::human_seconds, output);
  const double step_tokens = static_cast<double>(question.training.tokens) *
                             static_cast<double>(question.training.sequences);
  const double hours = question.wish.devices * best.time.total() / kHour * kBillion / step_tokens;
  json["device_hours_per_billion_tokens"] = hours;
  json["longest_context"] =
      model::longest_context(question.training, question.wish, question.machine, largest_memory);
  output.print("\n");
  if (best.way.split.context <= run_option("ranks").most) {
    output.print("look at it    {}\n", ring_words(question, best.way));
  }
  output.print("device-hours  {:.3g} for a billion tokens\n", hours);
  output.print("longest       {} tokens of one sequence fit\n",
               report::human_count(json["longest_context"]));
  output.finish("plan", document);
  return 0;
}

}  // namespace ringlab::cli
