// Mistakes of heads and batches: whose keys and values are read.
#include <algorithm>
#include <limits>

#include "property_tests/diagnosis/hypotheses.h"
#include "reference/core/unwritten.h"

namespace ringlab::verify {
namespace {

struct Source {
  std::int64_t batch, head;
};
/// The place where query head h of batch entry b finds its keys or values.
using Reads = std::function<Source(const Shape& shape, std::int64_t b, std::int64_t h)>;

Tensor<double> gathered(const Tensor<double>& x, const Shape& shape, const Reads& reads) {
  Tensor<double> y({shape.batch, shape.q_heads, x.extents().tokens, x.extents().channels});
  return mapped(y, [&](double, auto b, auto h, auto t, auto c) {
    const Source source = reads(shape, b, h);
    return x(source.batch, source.head, t, c);
  });
}

Source right(const Shape& shape, std::int64_t b, std::int64_t h) {
  return {b, h / (shape.q_heads / shape.kv_heads)};
}

Hypothesis by_heads(Suspect suspect, const Reads& k, const Reads& v) {
  return by_reading(std::move(suspect), [=](Trial& trial) {
    const Shape shape = trial.shape();
    trial.data.k = gathered(trial.data.k, shape, k);
    trial.data.v = gathered(trial.data.v, shape, v);
    trial.problem.shape.kv_heads = shape.q_heads;
  });
}

Hypothesis by_both(Suspect suspect, const Reads& reads) {
  return by_heads(std::move(suspect), reads, reads);
}

/// K/V heads first … end-1 are those of `rank`, where heads are dealt in order.
struct DealtHeads {
  std::int64_t first, end;
};
DealtHeads dealt_heads(const Scene& scene, int rank) {
  const std::int64_t heads = scene.trial.shape().kv_heads, ranks = scene.trial.options.ranks;
  return {heads * rank / ranks, heads * (rank + 1) / ranks};
}

/// Query heads and K/V heads that a rank takes; of the latter as many as in DealtHeads.
struct TakenHeads {
  std::int64_t first_query, queries, first_key, keys;
};
using Dealing = TakenHeads (*)(const DealtHeads& right, const Scene& scene, int rank);

TakenHeads without_group(const DealtHeads& right, const Scene& scene, int) {
  const std::int64_t keys = right.end - right.first;
  return {right.first, keys * scene.trial.group(), right.first, keys};
}
TakenHeads as_key_heads(const DealtHeads& right, const Scene&, int) {
  return {right.first, right.end - right.first, right.first, right.end - right.first};
}
TakenHeads one_of_each_group(const DealtHeads& right, const Scene& scene, int) {
  const std::int64_t keys = right.end - right.first;
  return {right.first * scene.trial.group(), keys, right.first, keys};
}
TakenHeads rounded_down(const DealtHeads&, const Scene& scene, int rank) {
  const std::int64_t keys = scene.trial.shape().kv_heads / scene.trial.options.ranks;
  return {keys * rank * scene.trial.group(), keys * scene.trial.group(), keys * rank, keys};
}

/// The K/V head that the last rank to take query head h reads for it; -1: nobody takes it.
std::int64_t key_head_dealt(const Scene& scene, Dealing dealing, std::int64_t h) {
  std::int64_t read = -1;
  for (int rank = 0; rank < scene.trial.options.ranks; ++rank) {
    const TakenHeads taken = dealing(dealt_heads(scene, rank), scene, rank);
    if (h < taken.first_query || h >= taken.first_query + taken.queries) continue;
    read = taken.first_key + (h - taken.first_query) / (taken.queries / taken.keys);
  }
  return read;
}

/// Heads that nobody takes are never written.
Hypothesis dealt(Suspect suspect, Dealing dealing) {
  return {std::move(suspect), [dealing](const Scene& scene) {
            const auto reads = [&](const Shape&, std::int64_t b, std::int64_t h) {
              return Source{b, std::max<std::int64_t>(key_head_dealt(scene, dealing, h), 0)};
            };
            Prediction prediction = by_both({}, reads).predict(scene);
            for (Tensor<double>* tensor : {&prediction.output.out, &prediction.output.lse}) {
              *tensor = mapped(*tensor, [&](double x, auto, auto h, auto, auto) {
                return key_head_dealt(scene, dealing, h) < 0 ? kUnwritten : x;
              });
            }
            return prediction;
          }};
}

/// Each rank's own tokens of its own heads are zeros, on the way there and on the way back.
Prediction own_part_lost(const Scene& scene) {
  const Model& right = scene.right;
  std::vector<int> taker(static_cast<std::size_t>(right.shape().kv_heads));
  for (int rank = 0; rank < scene.trial.options.ranks; ++rank) {
    const DealtHeads heads = dealt_heads(scene, rank);
    for (std::int64_t head = heads.first; head < heads.end; ++head) {
      taker[static_cast<std::size_t>(head)] = rank;
    }
  }
  const auto without_own = [&](const Tensor<double>& x, const std::vector<int>& holder) {
    const std::int64_t group = x.extents().heads / right.shape().kv_heads;
    return mapped(x, [&](double value, auto, auto h, auto t, auto) {
      const bool own =
          taker[static_cast<std::size_t>(h / group)] == holder[static_cast<std::size_t>(t)];
      return own ? 0 : value;
    });
  };
  Trial trial = scene.trial;
  trial.data.q = without_own(trial.data.q, right.q_rank);
  trial.data.k = without_own(trial.data.k, right.k_rank);
  trial.data.v = without_own(trial.data.v, right.k_rank);
  Prediction prediction = finish(make_model(std::move(trial), scene.profile));
  for (Tensor<double>* tensor : {&prediction.output.out, &prediction.output.lse,
                                 &prediction.allowed.out, &prediction.allowed.lse}) {
    *tensor = without_own(*tensor, right.q_rank);
  }
  return prediction;
}

/// Puts outputs of rank r's heads where those of rank P - 1 - r belong; where these ranks differ in
/// their number of heads, no run comes to its end.
Prediction home_reversed(const Scene& scene, bool out, bool lse) {
  Prediction prediction = by_model({}, [](Model&) {}).predict(scene);
  std::vector<std::int64_t> from = in_order(scene.trial.shape().q_heads);
  const int ranks = scene.trial.options.ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const DealtHeads here = dealt_heads(scene, rank), there = dealt_heads(scene, ranks - 1 - rank);
    if (here.end - here.first != there.end - there.first) return prediction;
    for (std::int64_t n = 0; n < (here.end - here.first) * scene.trial.group(); ++n) {
      from[static_cast<std::size_t>(here.first * scene.trial.group() + n)] =
          there.first * scene.trial.group() + n;
    }
  }
  std::vector<Tensor<double>*> moved;
  if (out) moved = {&prediction.output.out, &prediction.allowed.out};
  if (lse) moved.insert(moved.end(), {&prediction.output.lse, &prediction.allowed.lse});
  for (Tensor<double>* tensor : moved) {
    const Tensor<double> right = *tensor;
    *tensor = mapped(right, [&](double, auto b, auto h, auto t, auto c) {
      return right(b, from[static_cast<std::size_t>(h)], t, c);
    });
  }
  return prediction;
}

}  // namespace

std::vector<Hypothesis> head_mistakes() {
  const Reads batch_0 = [](const Shape& shape, auto, auto h) {
    return Source{0, right(shape, 0, h).head};
  };
  const Reads modulo = [](const Shape& shape, auto b, auto h) {
    return Source{b, h % shape.kv_heads};
  };
  return {by_both({"heads.modulo", "query head h reads K/V head h % kv_heads"}, modulo),
          by_heads({"heads.modulo_in_k", "query head h reads keys of K/V head h % kv_heads"},
                   modulo, right),
          by_heads({"heads.modulo_in_v", "query head h reads values of K/V head h % kv_heads"},
                   right, modulo),
          by_both({"heads.modulo", "query head h reads K/V head h % kv_heads"},
                  [](const Shape& shape, auto b, auto h) {
                    const std::int64_t flat =
                        (b * shape.q_heads + h) % (shape.batch * shape.kv_heads);
                    return Source{flat / shape.kv_heads, flat % shape.kv_heads};
                  }),
          by_both({"heads.always_the_first", "all heads read K/V head 0 of batch entry 0"},
                  [](const Shape&, auto, auto) {
                    return Source{0, 0};
                  }),
          by_both({"heads.first_of_the_batch", "all heads read K/V head 0 of their batch entry"},
                  [](const Shape&, auto b, auto) {
                    return Source{b, 0};
                  }),
          by_both({"heads.of_the_neighbour", "query heads read the next K/V head"},
                  [](const Shape& shape, auto b, auto h) {
                    return Source{b, (right(shape, b, h).head + 1) % shape.kv_heads};
                  }),
          by_heads({"heads.values_of_the_first", "all heads read the values of K/V head 0"}, right,
                   [](const Shape&, auto b, auto) {
                     return Source{b, 0};
                   }),
          dealt({"heads.dealt_without_group",
                 "ranks take query heads by the number of their K/V head, not by that times the "
                 "group"},
                without_group),
          dealt({"heads.dealt_as_key_heads",
                 "ranks take query heads by the numbers of their K/V heads, and as many: others of "
                 "the group have no rank"},
                as_key_heads),
          dealt({"heads.one_of_each_group",
                 "ranks take as many query heads as K/V heads, not that times the group"},
                one_of_each_group),
          dealt({"heads.rest_has_no_rank",
                 "each rank takes kv_heads / P heads, rounded down: the rest has no rank"},
                rounded_down),
          {{"heads.own_part_lost",
            "what a rank has itself of its heads, and keeps of their results, is not put in its "
            "place: there are zeros"},
           own_part_lost},
          {{"heads.come_home_reversed",
            "outputs of a rank's heads come home to those of the rank at the other end"},
           [](const Scene& scene) { return home_reversed(scene, true, false); }},
          {{"heads.lse_comes_home_reversed",
            "lse of a rank's heads comes home to those of the rank at the other end"},
           [](const Scene& scene) { return home_reversed(scene, false, true); }},
          {{"heads.results_come_home_reversed",
            "o and lse of a rank's heads come home to those of the rank at the other end"},
           [](const Scene& scene) { return home_reversed(scene, true, true); }},
          by_both({"batch.always_the_first", "K and V are those of batch entry 0"}, batch_0),
          by_heads({"batch.values_of_the_first", "V is that of batch entry 0"}, right, batch_0),
          by_heads({"batch.keys_of_the_first", "K is that of batch entry 0"}, batch_0, right)};
}

}  // namespace ringlab::verify
