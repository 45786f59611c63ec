#include "cli/model/model_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/inputs/run_options.h"
#include "cli/model/model_options.h"
#include "reference/core/error.h"
#include "reference/model/named.h"
#include "reference/model/training/transformer_file.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kTokens = 131072, kStepTokens = std::int64_t{1} << 22;
constexpr double kBillion = 1e9, kHour = 3600;

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

model::Transformer transformer_named(const std::string& name) {
  return name.ends_with(".json") ? model::read_transformer(name) : model::find_transformer(name);
}

std::optional<int> take_number(Arguments& arguments, const std::string& name) {
  if (!arguments.given(name)) return std::nullopt;
  return static_cast<int>(arguments.take_integer(name, 1, 1, kMostDevices));
}

template <class Value, std::size_t kCount>
std::optional<Value> take_word(Arguments& arguments, const std::string& name,
                               const std::array<std::pair<const char*, Value>, kCount>& words) {
  if (!arguments.given(name)) return std::nullopt;
  return arguments.take_choice<Value>(name, words[0].second, {words.begin(), words.end()});
}

/// Sequences with kStepTokens together, a multiple of the devices where there are more than those.
std::int64_t usual_sequences(std::int64_t tokens, std::int64_t devices) {
  const std::int64_t sequences = std::max<std::int64_t>(1, kStepTokens / tokens);
  return sequences > devices ? sequences / devices * devices : sequences;
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

}  // namespace

std::vector<OptionSpec> plan_model_options() {
  return {
      {"model", "NAME",
       "a step of a whole model: " + model::names_of(model::known_transformers()) +
           ", or a config.json as Hugging Face's hub has them"},
      {"phase", "WHAT", "train, prefill or decode (train)", "with --model"},
      {"cached", "C", "tokens before --tokens that lie on the devices already, in a prefill (0)",
       "with --phase prefill"},
      {"pass", "WHAT", "keys (and values) or queries go round in a prefill; not said: searched",
       "with --phase prefill"},
      {"devices", "D", "devices to split it over (8)"},
      {"sequences", "S", "sequences of --tokens in a step (4194304 tokens in all; of a decode 1)"},
      {"context", "P", "devices of a ring; as the next three: what is not said is searched"},
      {"tensor", "T", "devices that share heads and matrices"},
      {"stages", "S", "groups of layers, one after the other"},
      {"pieces", "V", "parts of each stage, which take turns (1)"},
      {"replicas", "R", "copies with sequences of their own"},
      {"by-heads", "U",
       "of --context: neighbours that deal heads, all-to-all; a ring of what is left"},
      {"keep", "WHAT", "keep of a layer, for its backward pass, everything, attention or inputs"},
      {"shard", "WHAT", "over devices with the same weights: optimizer or weights"},
      {"block-tokens", "N", "tokens of feed-forward and logits at a time (4096; 0: all)"},
      {"html", "FILE", "write the answer as a page of pictures", "with --model"}};
}

model::Transformer take_model(Arguments& arguments) {
  return transformer_named(*arguments.take_text("model"));
}

model::SplitWish take_split(Arguments& arguments, std::int64_t most) {
  model::SplitWish wish;
  wish.devices = static_cast<int>(arguments.take_integer("devices", 8, 1, most));
  wish.context = take_number(arguments, "context");
  wish.tensor = take_number(arguments, "tensor");
  wish.stages = take_number(arguments, "stages");
  wish.by_heads = take_number(arguments, "by-heads");
  return wish;
}

std::int64_t take_tokens(Arguments& arguments, std::int64_t least) {
  return arguments.take_integer("tokens", kTokens, least, kMostModelTokens);
}

model::Machine take_model_machine(Arguments& arguments, const model::Transformer& model) {
  Problem problem;
  problem.dtype = DType::bf16;
  problem.shape.head_dim = model.head_dim;
  return take_machine(arguments, problem);
}

ModelQuestion take_model_question(Arguments& arguments) {
  ModelQuestion question{.training = {.model = take_model(arguments)}};
  model::Training& training = question.training;
  training.tokens = take_tokens(arguments, 2);
  training.block_tokens =
      arguments.take_integer("block-tokens", training.block_tokens, 0, kMostModelTokens);
  training.pieces = arguments.take_integer("pieces", 1, 1, training.model.layers);
  model::SplitWish& wish = question.wish;
  wish = take_split(arguments, kMostDevices);
  training.sequences = arguments.take_integer(
      "sequences", usual_sequences(training.tokens, wish.devices), 1, kMostModelTokens);
  wish.replicas = take_number(arguments, "replicas");
  wish.kept = take_word(arguments, "keep", kKeptWords);
  wish.sharded = take_word(arguments, "shard", kShardedWords);
  question.machine = take_model_machine(arguments, training.model);
  std::vector<OptionSpec> specs = machine_options();
  std::erase_if(specs, [](const OptionSpec& spec) { return spec.name == "node-ranks"; });
  question.machine_words = given_words(arguments, specs);
  return question;
}

Json model_figures(const model::Transformer& model, const model::Machine& machine) {
  return {{"model", model.name},
          {"shape", model_words(model)},
          {"parameters", model::parameter_count(model)},
          {"products", fmt::format("{:.4g} TFLOP/s", machine.products_per_s() / model::kTera)}};
}

Json configuration_of(const ModelQuestion& question, const Json& machine) {
  const model::Training& training = question.training;
  Json figures = model_figures(training.model, question.machine);
  figures["tokens"] = training.tokens;
  figures["sequences"] = training.sequences;
  figures["devices"] = question.wish.devices;
  figures.update(machine);
  return figures;
}

double utilisation(const ModelQuestion& question, double seconds) {
  return model::step_flops(question.training) /
         (seconds * question.machine.products_per_s() * question.wish.devices);
}

std::optional<double> expected_seconds(const ModelQuestion& question, const StepChoice& choice) {
  const model::Job job =
      model::attention_job(question.training, choice.way, question.machine, false);
  const auto expected = model::as_expected(question.machine, job.problem);
  if (!expected) return std::nullopt;
  const model::RingCost ring =
      model::ring_cost(question.training, choice.way, *expected, largest_memory);
  return model::step_time(question.training, choice.way, ring, *expected).total();
}

bool holds(const ModelQuestion& question, const StepChoice& choice) {
  return choice.memory.total() <= question.machine.memory_bytes;
}

double hours_per_billion_tokens(const ModelQuestion& question, double seconds) {
  const double step_tokens = static_cast<double>(question.training.tokens) *
                             static_cast<double>(question.training.sequences);
  return question.wish.devices * seconds / kHour * kBillion / step_tokens;
}

std::string keep_word(Kept kept) { return word_for(kKeptWords, kept); }
std::string shard_word(Sharded sharded) { return word_for(kShardedWords, sharded); }

std::string context_options(int context, int by_heads) {
  return fmt::format("--context {}", context) +
         (by_heads > 1 ? fmt::format(" --by-heads {}", by_heads) : "");
}

std::string split_options(const model::StepWay& way) {
  const model::Split& split = way.split;
  return fmt::format("{} --tensor {} --stages {} --replicas {} --keep {} --shard {}",
                     context_options(split.context, way.by_heads), split.tensor, split.stages,
                     split.replicas, keep_word(way.kept), shard_word(way.sharded));
}

model::Job ring_job(const ModelQuestion& question, const model::StepWay& way) {
  return model::attention_job(question.training, way,
                              model::ring_machine(question.machine, way.group()),
                              question.training.model.all_windowed());
}

std::string ring_words(const ModelQuestion& question, const model::StepWay& way) {
  const model::Job job = ring_job(question, way);
  const Shape& shape = job.problem.shape;
  const RunOptions& options = job.options;
  return fmt::format(
      "ringlab simulate --tokens {} --heads {} --kv-heads {} --head-dim {} --mask {} --backward "
      "--ranks {} --layout {} --schedule {} --slots {} --node-ranks {}{}",
      shape.q_tokens, shape.q_heads, shape.kv_heads, shape.head_dim, job.problem.mask.text(),
      options.ranks, layout_name(options.layout), schedule_name(schedule_spec(options)),
      options.slots, model::ring_machine(question.machine, way.group()).node_ranks,
      question.machine_words);
}

OtherLinks<StepChoice> with_links(const ModelQuestion& question, const StepChoice& choice,
                                  double times) {
  ModelQuestion other = question;
  model::scale_links(other.machine, times);
  const model::RingCost ring =
      model::ring_cost(other.training, choice.way, other.machine, largest_memory);
  OtherLinks<StepChoice> links{
      .seconds = model::step_time(other.training, choice.way, ring, other.machine).total(),
      .best =
          model::weigh_training(other.training, other.wish, other.machine, largest_memory).front()};
  links.same = links.seconds <= links.best.time.total() * (1 + model::kAsFast);
  return links;
}

Parts parts_of(const model::StepMemory& memory) {
  return {{"weights", memory.weights},     {"gradients", memory.gradients},
          {"optimizer", memory.optimizer}, {"kept for backward", memory.kept},
          {"ring at work", memory.ring},   {"layer at work", memory.at_work}};
}

Parts parts_of(const model::StepTime& time) {
  return {{"products", time.products},       {"attention", time.attention},
          {"head exchange", time.heads},     {"recomputed", time.recomputed},
          {"tensor exchange", time.tensor},  {"waiting stages", time.bubble},
          {"weight exchange", time.weights}, {"optimizer", time.optimizer}};
}

}  // namespace ringlab::cli
