// Mistakes of the scale, and of the channels that a score sums over.
#include <cmath>

#include "property_tests/diagnosis/hypotheses.h"

namespace ringlab::verify {
namespace {

Hypothesis by_scale(Suspect suspect, const std::function<double(const Problem&)>& scale) {
  return by_reading(std::move(suspect),
                    [scale](Trial& trial) { trial.problem.scale = scale(trial.problem); });
}

double channels_of_q(const Problem& problem) { return static_cast<double>(problem.shape.head_dim); }

/// True for a channel c of `channels` that is left out.
using Dropped = std::function<bool(std::int64_t c, std::int64_t channels)>;

Tensor<double> without(const Tensor<double>& x, const Dropped& dropped) {
  const std::int64_t channels = x.extents().channels;
  return mapped(
      x, [&](double value, auto, auto, auto, auto c) { return dropped(c, channels) ? 0 : value; });
}

/// Scores without some channels.
Hypothesis by_channels(Suspect suspect, const Dropped& dropped) {
  return by_reading(std::move(suspect),
                    [dropped](Trial& trial) { trial.data.k = without(trial.data.k, dropped); });
}

/// Output without some channels: they are never summed.
Hypothesis by_value_channels(Suspect suspect, const Dropped& dropped) {
  return by_reading(std::move(suspect),
                    [dropped](Trial& trial) { trial.data.v = without(trial.data.v, dropped); });
}

bool last(std::int64_t c, std::int64_t channels) { return c + 1 == channels; }
bool last_of_odd(std::int64_t c, std::int64_t channels) {
  return last(c, channels) && channels % 2;
}
bool last_of_odd_beyond_one(std::int64_t c, std::int64_t channels) {
  return channels > 1 && last_of_odd(c, channels);
}

/// Channels that do not fill a vector; `kept`: as for drop_tails() of mask_mistakes.cpp.
void add_tails(std::vector<Hypothesis>& all) {
  for (const std::int64_t vector : {4, 8, 16, 32, 64}) {
    for (const std::int64_t kept : {std::int64_t{0}, vector}) {
      const Dropped tail = [=](std::int64_t c, std::int64_t channels) {
        return channels > kept && c >= channels / vector * vector;
      };
      const std::string length = std::to_string(vector);
      all.push_back(
          by_channels({"channels.tail_of_" + length + "_dropped",
                       "channels of q·k that do not fill a vector of " + length + " are ignored"},
                      tail));
      all.push_back(by_value_channels(
          {"channels.value_tail_of_" + length + "_dropped",
           "channels of v that do not fill a vector of " + length + " are ignored"},
          tail));
    }
  }
}

}  // namespace

std::vector<Hypothesis> scale_mistakes() {
  const Suspect of_v_dim{"scale.of_v_dim", "the scale is that of v_dim"};
  std::vector<Hypothesis> all = {
      by_scale({"scale.twice", "scores are multiplied by the scale twice"},
               [](const Problem& p) { return p.scale * p.scale; }),
      by_scale({"scale.missing", "scores are not scaled"}, [](const Problem&) { return 1.0; }),
      by_scale({"scale.ignored", "the scale is 1/sqrt(d), whatever is asked for"},
               [](const Problem& p) { return default_scale(p.shape.head_dim); }),
      by_scale({"scale.one_more_channel", "scores are scaled by 1/sqrt(d + 1)"},
               [](const Problem& p) {
                 return p.scale * std::sqrt(channels_of_q(p) / (channels_of_q(p) + 1));
               }),
      by_scale({"scale.inverse_of_d", "scores are scaled by 1/d"},
               [](const Problem& p) { return p.scale / std::sqrt(channels_of_q(p)); }),
      by_scale({"scale.inverted", "scores are divided by the scale"},
               [](const Problem& p) { return p.scale == 0 ? 0 : 1 / p.scale; }),
      by_scale({"scale.negated", "scores have the wrong sign"},
               [](const Problem& p) { return -p.scale; }),
      by_scale(of_v_dim,
               [](const Problem& p) {
                 return p.scale * std::sqrt(channels_of_q(p) / static_cast<double>(p.shape.v_dim));
               }),
      by_scale(of_v_dim, [](const Problem& p) { return default_scale(p.shape.v_dim); })};
  const Suspect odd{"channels.odd_one_dropped", "the last channel of an odd head_dim is ignored"};
  all.push_back(by_channels(odd, last_of_odd));
  all.push_back(by_channels(odd, last_of_odd_beyond_one));
  all.push_back(by_channels({"channels.last_dropped", "the last channel of q·k is ignored"}, last));
  const Suspect values{"channels.odd_value_dropped", "the last channel of an odd v_dim is ignored"};
  all.push_back(by_value_channels(values, last_of_odd));
  all.push_back(by_value_channels(values, last_of_odd_beyond_one));
  add_tails(all);
  return all;
}

}  // namespace ringlab::verify
