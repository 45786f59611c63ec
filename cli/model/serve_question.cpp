#include "cli/model/serve_question.h"

#include <fmt/format.h>

#include "cli/model/model_options.h"
#include "cli/model/model_question.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kMostSequences = 1 << 16;

ServeQuestion take_serving(Arguments& arguments) {
  ServeQuestion question{.serving = {.model = take_model(arguments)}};
  question.wish.split = take_split(arguments, kMostDevices);
  question.machine = take_model_machine(arguments, question.serving.model);
  return question;
}

}  // namespace

ServeQuestion take_prefill(Arguments& arguments) {
  ServeQuestion question = take_serving(arguments);
  model::Serving& serving = question.serving;
  serving.tokens = take_tokens(arguments, 2);
  serving.cached = arguments.take_integer("cached", 0, 0, kMostModelTokens);
  serving.block_tokens =
      arguments.take_integer("block-tokens", serving.block_tokens, 0, kMostModelTokens);
  if (arguments.given("pass")) {
    question.wish.passed = arguments.take_choice<model::Passed>(
        "pass", model::Passed::keys,
        {{"keys", model::Passed::keys}, {"queries", model::Passed::queries}});
  }
  return question;
}

ServeQuestion take_decode(Arguments& arguments) {
  ServeQuestion question = take_serving(arguments);
  question.serving.cached = take_tokens(arguments, 1);
  question.serving.sequences = arguments.take_integer("sequences", 1, 1, kMostSequences);
  return question;
}

Json configuration_of(const ServeQuestion& question, const Json& machine) {
  const model::Serving& serving = question.serving;
  Json figures = model_figures(serving.model, question.machine);
  figures["phase"] = serving.decodes() ? "decode" : "prefill";
  figures["tokens"] = serving.decodes() ? serving.cached : serving.tokens;
  if (serving.decodes()) {
    figures["sequences"] = serving.sequences;
  } else {
    figures["cached"] = serving.cached;
  }
  figures["devices"] = question.wish.split.devices;
  figures.update(machine);
  return figures;
}

std::optional<double> expected_seconds(const ServeQuestion& question, const model::ServeWay& way) {
  const Problem problem = model::serve_problem(question.serving, way, false);
  const auto expected = model::as_expected(question.machine, problem);
  if (!expected) return std::nullopt;
  return model::serve_time(question.serving, way, *expected).total();
}

double next_token_seconds(const ServeQuestion& question, const model::ServeWay& way) {
  model::Serving next = question.serving;
  next.cached = question.serving.keys();
  next.tokens = 1;
  const model::ServeWay then{way.split, model::Passed::queries, way.by_heads};
  return model::serve_time(next, then, question.machine).total();
}

OtherLinks<model::ServeChoice> with_links(const ServeQuestion& question,
                                          const model::ServeChoice& choice, double times) {
  model::Machine other = question.machine;
  model::scale_links(other, times);
  OtherLinks<model::ServeChoice> links{
      .seconds = model::serve_time(question.serving, choice.way, other).total(),
      .best = model::weigh_serving(question.serving, question.wish, other, largest_memory).front()};
  links.same = links.seconds <= links.best.time.total() * (1 + model::kAsFast);
  return links;
}

std::string time_name(const ServeQuestion& question) {
  return question.serving.decodes() ? "time of a token" : "time to the first token";
}

std::string pass_word(model::Passed passed) {
  return passed == model::Passed::keys ? "keys" : "queries";
}

std::string passed_words(const model::ServeWay& way) {
  return way.ring() == 1 ? "nothing" : pass_word(way.passed);
}

std::string serve_options(const ServeQuestion& question, const model::ServeWay& way) {
  const model::Split& split = way.split;
  const std::string words = context_options(split.context, way.by_heads) +
                            fmt::format(" --tensor {} --stages {}", split.tensor, split.stages);
  const bool nothing_passes = question.serving.decodes() || way.ring() == 1;
  return nothing_passes ? words : words + " --pass " + pass_word(way.passed);
}

Parts parts_of(const model::ServeMemory& memory) {
  return {
      {"weights", memory.weights}, {"K/V cache", memory.cache}, {"at work", memory.activations}};
}

Parts parts_of(const model::ServeTime& time) {
  return {{"products", time.products},       {"attention", time.attention},
          {"partial answers", time.answers}, {"head exchange", time.heads},
          {"tensor exchange", time.tensor},  {"between stages", time.stages}};
}

}  // namespace ringlab::cli
