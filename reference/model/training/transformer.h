// A transformer, as far as memory and time depend on it.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::model {

/// A decoder: embedding, layers of attention and a feed-forward network, logits. Sizes are those of
/// its configuration.
struct Transformer {
  std::string name = {};
  std::string source = {};
  std::int64_t layers = 0;
  std::int64_t hidden = 0;  ///< channels between layers
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t feed_forward = 0;                    ///< channels inside the feed-forward network
  bool gated = true;                                ///< three matrices of it, not two
  std::int64_t experts = 1, experts_per_token = 1;  ///< feed-forward networks of a layer, and used
  std::int64_t vocabulary = 0;
  bool tied = false;           ///< logits use the embedding's matrix
  std::int64_t positions = 0;  ///< that are learned; 0 where they are turned into q and k
  std::int64_t longest = 0;    ///< context that it was made for; 0: not said
  std::int64_t window = 0;     ///< keys that a query of a windowed layer sees; 0: no such layer
  std::int64_t windowed_layers = 0;
  bool qkv_bias = false, other_biases = false;
  bool norm_bias = false, head_norm = false;  ///< head_norm: q and k have norms of their own
  bool all_windowed() const { return windowed_layers == layers; }
};

/// Numbers that are learned.
struct Parameters {
  std::int64_t attention = 0;     ///< of a layer
  std::int64_t feed_forward = 0;  ///< of a layer, with all experts and their router
  std::int64_t norms = 0;         ///< of a layer
  std::int64_t embedding = 0;     ///< tokens and positions
  std::int64_t logits = 0;        ///< 0 where tied
  std::int64_t last_norm = 0;
  std::int64_t layer() const { return attention + feed_forward + norms; }
};
Parameters parameters_of(const Transformer& model);

/// The number of all learned numbers of a model.
std::int64_t parameter_count(const Transformer& model);

/// Operations of a token in the products of a layer with matrices that are learned, forward: two for
/// each number of them; of experts, those that the token goes through.
std::int64_t layer_product_flops(const Transformer& model);
/// Operations of a token in the product of the logits, forward.
std::int64_t logit_flops(const Transformer& model);

}  // namespace ringlab::model
