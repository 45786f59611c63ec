// Mistakes of soft-capping, ALiBi, sinks and dropout.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"
#include "reference/attention/modified.h"

namespace ringlab::verify {
namespace {

/// Other modifiers than were asked for; the edit also sees the problem as it was given.
Hypothesis by_modifiers(Suspect suspect, void (*edit)(Modifiers&, const Problem&)) {
  return by_reading(std::move(suspect), [edit](Trial& trial) {
    const Problem before = trial.problem;
    edit(trial.problem.modifiers, before);
  });
}

/// A score from the scaled product, for problems with this modifier.
using ScoreOf = std::function<double(const Model& model, double scaled, std::int64_t h,
                                     std::int64_t i, std::int64_t j)>;
/// Scores computed in another order, or from other distances.
Hypothesis by_score(Suspect suspect, const ScoreOf& score) {
  return by_model(std::move(suspect), [score](Model& model) {
    for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
      model.score(b, h, i, j) = score(model, scaled_product(model, b, h, i, j), h, i, j);
    });
  });
}

double capped(const Model& model, double scaled) {
  const double cap = model.trial.problem.modifiers.softcap;
  return cap == 0 ? scaled : cap * std::tanh(scaled / cap);
}

double slope_of(const Model& model, std::int64_t h) {
  const auto& slopes = model.trial.problem.modifiers.alibi_slopes;
  return slopes.empty() ? 0 : slopes[static_cast<std::size_t>(h)];
}

/// The factor that dropout gives a pair; 1 without dropout.
using FactorOf = std::function<double(const Model& model, const Dropout& dropout, std::int64_t b,
                                      std::int64_t h, std::int64_t i, std::int64_t j)>;
/// Other factors in acc: dropout leaves the row sum alone, so in_sum stays.
Hypothesis by_dropout(Suspect suspect, const FactorOf& factor) {
  return by_model(std::move(suspect), [factor](Model& model) {
    const Dropout dropout(model.trial.problem.modifiers);
    if (!dropout.active()) return;
    for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
      model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) * factor(model, dropout, b, h, i, j);
    });
  });
}

/// Lets hidden keys count with a score of -cap.
void cap_hidden(Model& model) {
  const double cap = model.trial.problem.modifiers.softcap;
  const Mask mask = model.trial.problem.mask;
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    if (cap == 0 || mask.allows(i, j)) return;
    model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) = 1;
    model.score(b, h, i, j) = -cap - alibi_bias(model, h, i, j);
  });
}

std::vector<Hypothesis> of_caps_and_slopes() {
  return {
      by_modifiers({"modifiers.capped_before_scaling", "q·k is soft-capped, and scaled after that"},
                   [](Modifiers& m, const Problem& p) {
                     if (p.scale > 0) m.softcap *= p.scale;
                   }),
      by_modifiers({"modifiers.cap_ignored", "soft-capping is ignored"},
                   [](Modifiers& m, const Problem&) { m.softcap = 0; }),
      by_modifiers({"modifiers.cap_in_another_base", "scores in base 2 meet a cap in base e"},
                   [](Modifiers& m, const Problem&) { m.softcap *= std::numbers::ln2; }),
      by_score({"modifiers.biased_before_capping", "what ALiBi subtracts is soft-capped, too"},
               [](const Model& m, double scaled, auto h, auto i, auto j) {
                 return capped(m, scaled - alibi_bias(m, h, i, j));
               }),
      by_score(
          {"modifiers.cap_not_divided", "soft-capping: cap · tanh(s), s not divided by the cap"},
          [](const Model& m, double scaled, auto h, auto i, auto j) {
            const double cap = m.trial.problem.modifiers.softcap;
            return (cap == 0 ? scaled : cap * std::tanh(scaled)) - alibi_bias(m, h, i, j);
          }),
      by_score({"modifiers.alibi_scaled", "what ALiBi subtracts is multiplied by the scale, too"},
               [](const Model& m, double scaled, auto h, auto i, auto j) {
                 return capped(m, scaled - m.trial.problem.scale * alibi_bias(m, h, i, j));
               }),
      by_score({"modifiers.alibi_scaled", "what ALiBi subtracts is multiplied by the scale, too"},
               [](const Model& m, double scaled, auto h, auto i, auto j) {
                 return capped(m, scaled) - m.trial.problem.scale * alibi_bias(m, h, i, j);
               }),
      by_score(
          {"modifiers.alibi_signed", "ALiBi: keys behind the query gain what those before lose"},
          [](const Model& m, double scaled, auto h, auto i, auto j) {
            const std::int64_t later = m.shape().kv_tokens - m.shape().q_tokens;
            return capped(m, scaled) - slope_of(m, h) * static_cast<double>(i + later - j);
          }),
      by_model(
          {"modifiers.capped_after_masking", "scores of hidden keys are soft-capped, too: to -cap"},
          cap_hidden),
      by_modifiers({"modifiers.alibi_ignored", "ALiBi is ignored"},
                   [](Modifiers& m, const Problem&) { m.alibi_slopes.clear(); }),
      by_modifiers({"modifiers.alibi_negated", "ALiBi has the wrong sign"},
                   [](Modifiers& m, const Problem&) {
                     for (double& slope : m.alibi_slopes) slope = -slope;
                   }),
      by_modifiers({"modifiers.slopes_of_kv_heads", "ALiBi takes the slope of the K/V head"},
                   [](Modifiers& m, const Problem& p) {
                     const auto given = m.alibi_slopes;
                     const auto group =
                         static_cast<std::size_t>(p.shape.q_heads / p.shape.kv_heads);
                     for (std::size_t h = 0; h < given.size(); ++h) {
                       m.alibi_slopes[h] = given[h / group];
                     }
                   }),
      by_modifiers({"modifiers.slopes_of_the_next_head", "every head has the slope of the next"},
                   [](Modifiers& m, const Problem&) {
                     if (m.alibi_slopes.empty()) return;
                     std::rotate(m.alibi_slopes.begin(), m.alibi_slopes.begin() + 1,
                                 m.alibi_slopes.end());
                   }),
      by_score({"modifiers.alibi_not_shifted",
                "ALiBi: with fewer queries than keys, query 0 stands at key 0"},
               [](const Model& m, double scaled, auto h, auto i, auto j) {
                 return capped(m, scaled) - slope_of(m, h) * static_cast<double>(std::abs(i - j));
               }),
  };
}

std::vector<Hypothesis> of_sinks() {
  return {
      by_model({"modifiers.sink_ignored", "sinks are ignored"},
               [](Model& m) { m.sink_counts = Tensor<double>(m.shape().lse()); }),
      by_model({"modifiers.sink_once_per_chunk", "the sink counts once for every chunk of keys"},
               [](Model& m) {
                 for_each_index(m.shape().lse(), [&](auto b, auto h, auto i, auto c) {
                   const auto chunks = needed_chunks(m, m.rank_of_query(i));
                   m.sink_counts(b, h, i, c) *= 1 + static_cast<double>(chunks.size());
                 });
               }),
      by_model({"modifiers.sink_once_per_chunk", "the sink counts once for every chunk of keys"},
               [](Model& m) {
                 for (double& count : m.sink_counts.values()) count *= m.trial.options.ranks;
               }),
      by_result({"modifiers.sink_forgotten_in_empty_rows",
                 "a query that sees no key has lse = -inf although there is a sink"},
                [](Prediction& prediction, const Model& m) {
                  for_each_index(m.shape().lse(), [&](auto b, auto h, auto i, auto) {
                    bool sees = false;
                    for (std::int64_t j = 0; j < m.shape().kv_tokens; ++j) {
                      sees |= m.in_sum(b, h, i, j) != 0;
                    }
                    if (sees) return;
                    prediction.output.lse(b, h, i, 0) = -std::numeric_limits<double>::infinity();
                    prediction.allowed.lse(b, h, i, 0) = 0;
                  });
                })};
}

// Random words by local positions are the usual mistake: kernels know rows of tiles, and the
// contract speaks of rows of the whole sequence.
std::vector<Hypothesis> of_dropout() {
  const auto keys_of_tile = [](const Model& m, const Dropout& d, auto b, auto h, auto i, auto j) {
    const std::int64_t tile = m.trial.options.tile_keys;
    return d.factor(b, h, i, j % tile);
  };
  const auto rows_of_tile = [](const Model& m, const Dropout& d, auto b, auto h, auto i, auto j) {
    return d.factor(b, h, i % m.trial.options.tile_queries, j);
  };
  return {by_dropout({"modifiers.dropout_ignored", "dropout is ignored"},
                     [](const Model&, const Dropout&, auto...) { return 1.0; }),
          by_dropout({"modifiers.dropout_factor_forgotten",
                      "kept weights are not divided by the probability of being kept"},
                     [](const Model&, const Dropout& d, auto b, auto h, auto i, auto j) {
                       return d.keeps(b, h, i, j) ? 1.0 : 0.0;
                     }),
          by_dropout({"modifiers.dropout_heads_alike", "all heads drop the same pairs"},
                     [](const Model&, const Dropout& d, auto b, auto, auto i, auto j) {
                       return d.factor(b, 0, i, j);
                     }),
          by_dropout({"modifiers.dropout_words_of_the_first_keys",
                      "all keys take the random words of the first four"},
                     [](const Model&, const Dropout& d, auto b, auto h, auto i, auto j) {
                       return d.factor(b, h, i, j % 4);
                     }),
          by_dropout({"modifiers.dropout_of_local_keys",
                      "which pairs are dropped depends on where in its tile a key lies"},
                     keys_of_tile),
          by_dropout({"modifiers.dropout_of_local_queries",
                      "which pairs are dropped depends on where in its tile a query lies"},
                     rows_of_tile),
          by_model({"modifiers.dropout_in_the_row_sum",
                    "dropped weights are missing in the row sum, too"},
                   [](Model& m) {
                     const Dropout dropout(m.trial.problem.modifiers);
                     if (!dropout.active()) return;
                     for_each_pair(m, [&](auto b, auto h, auto i, auto j) {
                       const double kept = dropout.keeps(b, h, i, j) ? 1 : 0;
                       m.in_sum(b, h, i, j) *= kept;
                     });
                   }),
          by_model({"modifiers.dropout_in_the_row_sum",
                    "dropped weights are missing in the row sum, too"},
                   [](Model& m) {
                     constexpr double kNextToNothing = 1e-200;  // the maximum still knows the key
                     for_each_pair(m, [&](auto b, auto h, auto i, auto j) {
                       if (m.in_sum(b, h, i, j) == 0) return;
                       m.in_sum(b, h, i, j) = std::max(m.in_acc(b, h, i, j), kNextToNothing);
                     });
                   })};
}

}  // namespace

std::vector<Hypothesis> modifier_mistakes() {
  std::vector<Hypothesis> all = of_caps_and_slopes();
  for (auto group : {of_sinks, of_dropout}) {
    for (Hypothesis& one : group()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace ringlab::verify
