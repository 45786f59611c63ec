#include "property_tests/diagnosis/retelling.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "property_tests/diagnosis/evidence.h"
#include "property_tests/diagnosis/order.h"
#include "property_tests/diagnosis/tomography.h"
#include "stages/common/call_events.h"

namespace ringlab::verify {
namespace {

/// The longest rows that are read key by key.
constexpr std::int64_t kMostKeys = 64;

/// Runs the trial and tells what the ranks did, as the subject records it, or what it threw.
void run_and_record(const Subject& subject, Trial trial, const std::optional<Tensor<double>>& dout,
                    Retelling& told) {
  trial.options.trace = subject.can.has(Ability::traces);
  AttentionInput input = trial.input();
  if (dout) input.dout = dout->view();
  told.ranks.clear();
  const RecordedRun record;
  try {
    for (RankStats& rank : run_checked(subject, input, trial.options).ranks) {
      told.ranks.push_back(std::move(rank.events));
    }
  } catch (const std::exception& error) {
    told.failed = error.what();
    told.ranks = stages::events_of(record.ranks());
  }
  told.seen = first_event_mistake(record.ranks());
  const bool is_empty = std::ranges::all_of(told.ranks, [](const auto& r) { return r.empty(); });
  const bool says_nothing = !told.failed.empty() || !subject.can.has(Ability::traces);
  if (is_empty && says_nothing) told.ranks.clear();
}

/// The error of a number in units of what is allowed; NaN is off most.
double off_by(double got, double wanted, double allowed) {
  if (within(got, wanted, allowed)) return 0;
  const double off = std::abs(got - wanted) / allowed;
  return std::isfinite(off) ? off : HUGE_VAL;
}

/// The element of o or lse that is off most; nothing where all are within their bounds.
std::optional<Element> worst_element(const Evidence& evidence) {
  const Prediction& truth = evidence.truth;
  std::optional<Element> worst;
  double most = 0;
  const auto look = [&](const char* name, const Tensor<double>& got, const Tensor<double>& wanted,
                        const Tensor<double>& allowed) {
    for_each_index(got.extents(), [&](auto b, auto h, auto i, auto c) {
      const double off = off_by(got(b, h, i, c), wanted(b, h, i, c), allowed(b, h, i, c));
      if (off <= most) return;
      most = off;
      worst = Element{name, b, h, i, c};
    });
  };
  look("o", evidence.got.out, truth.output.out, truth.allowed.out);
  look("lse", evidence.got.lse, truth.output.lse, truth.allowed.lse);
  return worst;
}

std::vector<std::int64_t> seen_keys(const Model& model, const Element& at, int owner) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
    const bool is_seen = model.in_sum(at.batch, at.head, at.token, j) != 0;
    if (is_seen && model.rank_of_key(j) == owner) keys.push_back(j);
  }
  return keys;
}

/// The trial in which nobody sees the chunks that the row's rank meets after step `last`.
Trial without_later_chunks(const Model& model, const Element& at, int last) {
  Trial trial = model.trial;
  Problem& problem = trial.problem;
  const auto& owners = model.visits[static_cast<std::size_t>(model.rank_of_query(at.token))];
  const Pairs kept = make_pairs(
      problem.shape.q_tokens, problem.shape.kv_tokens, [&](std::int64_t, std::int64_t j) {
        const auto found = std::ranges::find(owners, model.rank_of_key(j));
        return found - owners.begin() <= last;
      });
  std::vector<MaskTerm> terms = problem.mask.terms();
  terms.emplace_back(BitMask{kept.queries, kept.keys, kept.bits, "pairs"});
  problem.mask = Mask(std::move(terms)).bind(kept.queries, kept.keys);
  return trial;
}

void tell_state(const Subject& subject, const Model& model, const Element& at, int step,
                RowStep& told) {
  Trial trial = without_later_chunks(model, at, step);
  const AttentionOutput got = attend(subject, trial);
  const Prediction truth = finish(make_model(std::move(trial), model.profile));
  const auto [b, h, i] = std::tuple(at.batch, at.head, at.token);
  told.o = Told{truth.output.out(b, h, i, at.channel), got.out(b, h, i, at.channel)};
  told.lse = Told{truth.output.lse(b, h, i, 0), got.lse(b, h, i, 0)};
  told.wrong = !within(told.o->got, told.o->exact, truth.allowed.out(b, h, i, at.channel)) ||
               !within(told.lse->got, told.lse->exact, truth.allowed.lse(b, h, i, 0));
}

void tell_weights(const Subject& subject, const Model& model, WrongRow& row) {
  const Tomography read = read_softmax(subject, model.trial);
  for (RowStep& step : row.steps) {
    step.weight = Told{};
    for (const std::int64_t key : step.keys) {
      step.weight->exact += read.exact(row.at.batch, row.at.head, row.at.token, key);
      step.weight->got += read.got(row.at.batch, row.at.head, row.at.token, key);
    }
  }
}

WrongRow tell_row(const Subject& subject, const Evidence& evidence, const Element& at) {
  const Model& model = evidence.scene.right;
  const AttentionOutput &got = evidence.got, &exact = evidence.truth.output;
  const auto [b, h, i] = std::tuple(at.batch, at.head, at.token);
  WrongRow row{.at = at,
               .rank = model.rank_of_query(i),
               .o = {exact.out(b, h, i, at.channel), got.out(b, h, i, at.channel)},
               .lse = {exact.lse(b, h, i, 0), got.lse(b, h, i, 0)}};
  for (const int owner : model.visits[static_cast<std::size_t>(row.rank)]) {
    row.steps.push_back({.owner = owner, .keys = seen_keys(model, at, owner)});
  }
  try {
    if (model.shape().kv_tokens <= kMostKeys) tell_weights(subject, model, row);
    if (!subject.can.has(Ability::bit_masks)) return row;
    for (std::size_t step = 0; step < row.steps.size(); ++step) {
      tell_state(subject, model, at, static_cast<int>(step), row.steps[step]);
    }
  } catch (const std::exception&) {
    // The row keeps the steps that were told until then.
  }
  return row;
}

}  // namespace

Retelling retell(const Subject& subject, const Case& failing) {
  Case shown = failing;
  shown.transport = TransportKind::simulated;
  if (!subject.can.has(Ability::schedules)) shown.schedule = subject.can.schedule;
  Retelling told;
  told.repeats_chunks = subject.can.has(Ability::queries_travel);
  const Trial trial = make_trial(shown);
  told.needed =
      visits_of(make_model(trial, subject.profile(trial.problem, trial.options)), Visited::needed);
  run_and_record(subject, trial, {}, told);
  if (!told.failed.empty()) return told;
  const std::optional<Evidence> evidence = forward_evidence(subject, shown);
  if (!evidence) return told;
  if (const auto at = worst_element(*evidence)) told.row = tell_row(subject, *evidence, *at);
  if (!told.row && subject.can.has(Ability::backward))
    run_and_record(subject, trial, make_dout(shown), told);
  return told;
}

}  // namespace ringlab::verify
