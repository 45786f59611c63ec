#include "reference/model/training/transformer.h"

namespace ringlab::model {
namespace {

std::int64_t feed_forward_matrices(const Transformer& m) {
  return (m.gated ? 3 : 2) * m.hidden * m.feed_forward;
}
/// Numbers of the router, which chooses the experts that a token goes through.
std::int64_t router(const Transformer& m) { return m.experts > 1 ? m.hidden * m.experts : 0; }

std::int64_t attention_matrices(const Transformer& m) {
  return 2 * m.hidden * m.head_dim * (m.heads + m.kv_heads);
}

}  // namespace

Parameters parameters_of(const Transformer& m) {
  Parameters p;
  const std::int64_t norm = m.norm_bias ? 2 * m.hidden : m.hidden;
  p.attention = attention_matrices(m) + (m.qkv_bias ? m.head_dim * (m.heads + 2 * m.kv_heads) : 0) +
                (m.other_biases ? m.hidden : 0);
  p.feed_forward = m.experts * feed_forward_matrices(m) + router(m) +
                   (m.other_biases ? m.experts * (m.feed_forward + m.hidden) : 0);
  p.norms = 2 * norm + (m.head_norm ? 2 * m.head_dim : 0);
  p.embedding = (m.vocabulary + m.positions) * m.hidden;
  p.logits = m.tied ? 0 : m.vocabulary * m.hidden;
  p.last_norm = norm;
  return p;
}

std::int64_t parameter_count(const Transformer& model) {
  const Parameters p = parameters_of(model);
  return model.layers * p.layer() + p.embedding + p.logits + p.last_norm;
}

std::int64_t layer_product_flops(const Transformer& m) {
  return 2 * (attention_matrices(m) + m.experts_per_token * feed_forward_matrices(m) + router(m));
}

std::int64_t logit_flops(const Transformer& model) { return 2 * model.vocabulary * model.hidden; }

}  // namespace ringlab::model
