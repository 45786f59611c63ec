// The question of `ringlab plan --model`, and figures of its answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "cli/model/plan_parts.h"
#include "reference/model/training/step_planner.h"

namespace ringlab::cli {

struct ModelQuestion {
  model::Training training;
  model::SplitWish wish = {};
  model::Machine machine = {};
  std::string machine_words = {};  ///< of the command line, but for the size of nodes
};

/// The model that --model names.
model::Transformer take_model(Arguments& arguments);
/// Devices, `most` at most, and the numbers of a split that are given.
model::SplitWish take_split(Arguments& arguments, std::int64_t most);
inline constexpr std::int64_t kMostDevices = 1 << 17;
/// --tokens: `least` at least, and kMostModelTokens at most, like --cached.
std::int64_t take_tokens(Arguments& arguments, std::int64_t least);
inline constexpr std::int64_t kMostModelTokens = std::int64_t{1} << 31;
/// The machine, for a model's numbers and channels.
model::Machine take_model_machine(Arguments& arguments, const model::Transformer& model);
/// Model, and speed of products, as the output echoes them.
Json model_figures(const model::Transformer& model, const model::Machine& machine);

/// The options that take_model_question() takes, besides --tokens and the machine's.
std::vector<OptionSpec> plan_model_options();
ModelQuestion take_model_question(Arguments& arguments);

/// The question as the output echoes it, with the machine's figures.
Json configuration_of(const ModelQuestion& question, const Json& machine);

/// Counted operations of a step over those that the devices could do in its time.
double utilisation(const ModelQuestion& question, double seconds);

/// Seconds expected of a choice on real machines; nothing where their losses are not known.
std::optional<double> expected_seconds(const ModelQuestion& question,
                                       const model::StepChoice& choice);

/// True if a choice fits into a device's memory.
bool holds(const ModelQuestion& question, const model::StepChoice& choice);

/// Device-hours of a billion tokens, in steps of `seconds`.
double hours_per_billion_tokens(const ModelQuestion& question, double seconds);

std::string keep_word(model::Kept kept);
std::string shard_word(model::Sharded sharded);
/// The options that fix a context.
std::string context_options(int context, int by_heads);
/// The options that fix a way.
std::string split_options(const model::StepWay& way);
/// The job and the command that simulate the ring of a layer.
model::Job ring_job(const ModelQuestion& question, const model::StepWay& way);
std::string ring_words(const ModelQuestion& question, const model::StepWay& way);

OtherLinks<model::StepChoice> with_links(const ModelQuestion& question,
                                         const model::StepChoice& choice, double times);

Parts parts_of(const model::StepMemory& memory);
Parts parts_of(const model::StepTime& time);

}  // namespace ringlab::cli
