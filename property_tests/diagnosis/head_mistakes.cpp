// Mistakes of heads and batches: whose keys and values are read.
#include "property_tests/diagnosis/hypotheses.h"

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
          by_both({"batch.always_the_first", "K and V are those of batch entry 0"}, batch_0),
          by_heads({"batch.values_of_the_first", "V is that of batch entry 0"}, right, batch_0),
          by_heads({"batch.keys_of_the_first", "K is that of batch entry 0"}, batch_0, right)};
}

}  // namespace ringlab::verify
