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

/// The last rank that takes query head h where each rank takes the right number of query heads, but
/// from the index of its first K/V head on; -1: none.
int taker_without_group(const Scene& scene, std::int64_t h) {
  int taker = -1;
  for (int rank = 0; rank < scene.trial.options.ranks; ++rank) {
    const DealtHeads heads = dealt_heads(scene, rank);
    const std::int64_t taken = (heads.end - heads.first) * scene.trial.group();
    if (h >= heads.first && h < heads.first + taken) taker = rank;
  }
  return taker;
}

/// Heads that nobody takes are never written.
Prediction dealt_without_group(const Scene& scene) {
  const auto reads = [&](const Shape&, std::int64_t b, std::int64_t h) {
    const int taker = taker_without_group(scene, h);
    if (taker < 0) return Source{b, 0};
    const std::int64_t first = dealt_heads(scene, taker).first;
    return Source{b, first + (h - first) / scene.trial.group()};
  };
  Prediction prediction = by_both({}, reads).predict(scene);
  for (Tensor<double>* tensor : {&prediction.output.out, &prediction.output.lse}) {
    *tensor = mapped(*tensor, [&](double x, auto, auto h, auto, auto) {
      return taker_without_group(scene, h) < 0 ? std::numeric_limits<double>::quiet_NaN() : x;
    });
  }
  return prediction;
}

/// Each rank takes as many query heads as K/V heads, by the numbers of those; nobody takes the rest.
Prediction dealt_as_key_heads(const Scene& scene) {
  const std::int64_t taken = scene.trial.shape().kv_heads;
  const auto reads = [&](const Shape&, std::int64_t b, std::int64_t h) {
    return Source{b, std::min(h, taken - 1)};
  };
  Prediction prediction = by_both({}, reads).predict(scene);
  for (Tensor<double>* tensor : {&prediction.output.out, &prediction.output.lse}) {
    *tensor = mapped(
        *tensor, [&](double x, auto, auto h, auto, auto) { return h < taken ? x : kUnwritten; });
  }
  return prediction;
}

/// Puts outputs of rank r's heads where those of rank P - 1 - r belong; where these ranks differ in
/// their number of heads, no run comes to its end.
Prediction home_reversed(const Scene& scene) {
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
  for (Tensor<double>* tensor : {&prediction.output.out, &prediction.allowed.out}) {
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
  return {by_both({"heads.modulo", "query head h reads K/V head h % kv_heads"},
                  [](const Shape& shape, auto b, auto h) {
                    return Source{b, h % shape.kv_heads};
                  }),
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
          {{"heads.dealt_without_group",
            "ranks take query heads by the number of their K/V head, not by that times the group"},
           dealt_without_group},
          {{"heads.dealt_as_key_heads",
            "ranks take query heads by the numbers of their K/V heads, and as many: others of the "
            "group have no rank"},
           dealt_as_key_heads},
          {{"heads.come_home_reversed",
            "outputs of a rank's heads come home to those of the rank at the other end"},
           home_reversed},
          by_both({"batch.always_the_first", "K and V are those of batch entry 0"}, batch_0),
          by_heads({"batch.values_of_the_first", "V is that of batch entry 0"}, right, batch_0),
          by_heads({"batch.keys_of_the_first", "K is that of batch entry 0"}, batch_0, right)};
}

}  // namespace ringlab::verify
