// The questions of `ringlab plan --phase prefill` and `decode`, and the words of their answers.
#pragma once

#include <optional>
#include <string>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "cli/model/plan_parts.h"
#include "reference/model/serving/serve_planner.h"

namespace ringlab::cli {

struct ServeQuestion {
  model::Serving serving;
  model::ServeWish wish = {};
  model::Machine machine = {};
  double memory_bytes() const { return machine.memory_bytes; }
};

/// The question of a prefill: --tokens are those of the prompt, behind --cached ones.
ServeQuestion take_prefill(Arguments& arguments);
/// The question of decoding: --tokens are cached, of each of --sequences.
ServeQuestion take_decode(Arguments& arguments);

/// The question as the output echoes it, with the machine's figures.
Json configuration_of(const ServeQuestion& question, const Json& machine);

/// Seconds expected of a way on real machines; nothing where their losses are not known.
std::optional<double> expected_seconds(const ServeQuestion& question, const model::ServeWay& way);

/// Seconds of one more token behind a prefill, on the same devices.
double next_token_seconds(const ServeQuestion& question, const model::ServeWay& way);

/// A choice with links `times` as fast, and the best one then.
OtherLinks<model::ServeChoice> with_links(const ServeQuestion& question,
                                          const model::ServeChoice& choice, double times);

/// "time of a token", or "time to the first token".
std::string time_name(const ServeQuestion& question);
std::string pass_word(model::Passed passed);
/// The tensors that go round in the ring of a way, or "nothing".
std::string passed_words(const model::ServeWay& way);
/// The options that fix a way.
std::string serve_options(const ServeQuestion& question, const model::ServeWay& way);

Parts parts_of(const model::ServeMemory& memory);
Parts parts_of(const model::ServeTime& time);

}  // namespace ringlab::cli
