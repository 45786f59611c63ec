#include "reference/model/training/transformer_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/input_file.h"
#include "reference/io/outside_json.h"
#include "reference/model/named.h"

namespace ringlab::model {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostConfigBytes = std::int64_t{1} << 20;
constexpr io::JsonLimits kConfigLimits{
    .what = "configuration", .depth = 12, .keys = 4096, .values = 200000};
// Products of sizes stay below 2^63.
constexpr std::int64_t kMostHidden = 1 << 18, kMostFeedForward = 1 << 20, kMostHeads = 1 << 12;
constexpr std::int64_t kMostLayers = 1 << 10, kMostTokens = 1 << 28;

/// The object of a configuration, with names that differ between models.
class Configuration {
 public:
  Configuration(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  /// The value of the first of `names` that is there and not null.
  const Json* find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto found = json_.find(name);
      if (found != json_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }

  std::int64_t size(std::initializer_list<const char*> names, std::int64_t most) const {
    const Json* value = find(names);
    if (!value) fail(*names.begin(), "a whole number", "none");
    return whole(*names.begin(), *value, most);
  }
  std::int64_t size(std::initializer_list<const char*> names, std::int64_t most,
                    std::int64_t otherwise) const {
    const Json* value = find(names);
    return value ? whole(*names.begin(), *value, most) : otherwise;
  }
  bool flag(const char* name, bool otherwise) const {
    const Json* value = find({name});
    if (!value) return otherwise;
    if (!value->is_boolean()) fail(name, "true or false", shown(*value));
    return value->get<bool>();
  }
  std::string text(const char* name, const std::string& otherwise) const {
    const Json* value = find({name});
    if (!value) return otherwise;
    if (!value->is_string()) fail(name, "a text", shown(*value));
    return io::printable(value->get<std::string>());
  }

  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& found) const {
    throw_input_error({.where = where_ + ": " + key,
                       .expected = expected,
                       .actual = found,
                       .hint = "docs/plan.md says what is read of a model's config.json."});
  }

 private:
  static std::string shown(const Json& value) { return io::printable(value.dump().substr(0, 40)); }

  std::int64_t whole(const char* name, const Json& value, std::int64_t most) const {
    const bool fits = value.is_number_integer() && value.get<double>() >= 1 &&
                      value.get<double>() <= static_cast<double>(most);
    if (!fits) fail(name, "a whole number, 1 to " + std::to_string(most), shown(value));
    return value.get<std::int64_t>();
  }

  const Json& json_;
  std::string where_;
};

void refuse_what_is_not_modelled(const Configuration& config) {
  for (const char* key :
       {"kv_lora_rank", "shared_expert_intermediate_size", "n_shared_experts", "ssm_state_size",
        "linear_num_key_heads", "attn_layer_period", "attention_chunk_size"}) {
    if (config.find({key})) config.fail(key, "none: it is not modelled", "one");
  }
}

/// The number of layers that `layer_types` gives a window. Input error for a kind not modelled.
std::int64_t windows_listed(const Configuration& config, const Json& kinds, std::int64_t layers) {
  const bool is_list = kinds.is_array() && static_cast<std::int64_t>(kinds.size()) == layers;
  if (!is_list) config.fail("layer_types", "a list with a kind for each layer", "another one");
  const std::int64_t windowed = std::ranges::count(kinds, "sliding_attention");
  if (windowed + std::ranges::count(kinds, "full_attention") != layers) {
    config.fail("layer_types", "full_attention and sliding_attention: others are not modelled",
                "another kind");
  }
  return windowed;
}

/// The number of layers with a window where no list says it, by the rules in the models' code.
std::int64_t windows_by_rule(const Configuration& config, std::int64_t layers) {
  const std::string kind = config.text("model_type", "llama");
  const std::int64_t usual = kind == "gemma2"             ? 2
                             : kind.starts_with("gemma3") ? 6
                             : kind == "cohere2"          ? 4
                                                          : 0;
  if (usual > 0 || config.find({"sliding_window_pattern"})) {  // the last of so many sees all
    return layers - layers / config.size({"sliding_window_pattern"}, kMostLayers, usual);
  }
  if (!kind.starts_with("qwen2") || !config.find({"max_window_layers"})) return layers;
  return layers - std::min(layers, config.size({"max_window_layers"}, kMostLayers));
}

void read_windows(const Configuration& config, Transformer& model) {
  const bool used = config.flag("use_sliding_window", true);
  const Json* kinds = config.find({"layer_types"});
  if (kinds) model.windowed_layers = windows_listed(config, *kinds, model.layers);
  if (!used || !config.find({"sliding_window"}))
    model.windowed_layers = 0;
  else if (!kinds)
    model.windowed_layers = windows_by_rule(config, model.layers);
  if (model.windowed_layers > 0) model.window = config.size({"sliding_window"}, kMostTokens);
}

void read_kind(const Configuration& config, Transformer& model) {
  const std::string kind = config.text("model_type", "llama");
  const bool is_gpt2 = kind == "gpt2";
  model.gated = !is_gpt2 && kind != "gpt_neox" && kind != "phi" && kind != "starcoder2" &&
                kind != "falcon" && kind != "gpt_bigcode";
  model.tied = config.flag("tie_word_embeddings", is_gpt2 || kind.starts_with("gemma"));
  model.qkv_bias = is_gpt2 || config.flag("attention_bias", kind == "qwen2");
  model.other_biases = is_gpt2;
  model.norm_bias = is_gpt2;
  model.head_norm = kind.starts_with("qwen3");
  if (is_gpt2) model.positions = model.longest;
}

}  // namespace

Transformer transformer_of_json(std::string_view text, const std::string& where) {
  io::check_json(text, kConfigLimits, where);
  const Json json = Json::parse(text);
  if (!json.is_object()) {
    throw_input_error({.where = where, .expected = "an object", .actual = "another value"});
  }
  // The part that reads text, in a model of several kinds of input.
  const bool is_nested = json.contains("text_config") && json["text_config"].is_object();
  const Configuration config(is_nested ? json["text_config"] : json, where);
  refuse_what_is_not_modelled(config);
  Transformer model;
  model.name = config.text("name", where);
  model.source = config.text("title", where);
  model.layers = config.size({"num_hidden_layers", "n_layer"}, kMostLayers);
  model.hidden = config.size({"hidden_size", "n_embd"}, kMostHidden);
  model.heads = config.size({"num_attention_heads", "n_head"}, kMostHeads);
  model.kv_heads = config.size({"num_key_value_heads", "num_kv_heads"}, kMostHeads,
                               config.flag("multi_query", false) ? 1 : model.heads);
  if (model.heads % model.kv_heads != 0) {
    config.fail("num_key_value_heads", "a divisor of " + std::to_string(model.heads),
                std::to_string(model.kv_heads));
  }
  model.head_dim =
      config.size({"head_dim"}, kMostHeads, std::max<std::int64_t>(1, model.hidden / model.heads));
  model.experts = config.size({"num_local_experts", "num_experts"}, kMostLayers, 1);
  model.experts_per_token = config.size({"num_experts_per_tok"}, model.experts, 1);
  model.feed_forward =
      model.experts > 1
          ? config.size({"moe_intermediate_size", "intermediate_size"}, kMostFeedForward)
          : config.size({"intermediate_size", "n_inner"}, kMostFeedForward, 4 * model.hidden);
  model.vocabulary = config.size({"vocab_size"}, kMostTokens);
  model.longest = config.size({"max_position_embeddings", "n_positions"}, kMostTokens, 0);
  read_windows(config, model);
  read_kind(config, model);
  return model;
}

Transformer read_transformer(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path, kMostConfigBytes);
  return transformer_of_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

const std::vector<Transformer>& known_transformers() {
  static const std::vector<Transformer> models = [] {
    std::vector<Transformer> all;
    for (const TransformerText& file : transformer_texts()) {
      all.push_back(transformer_of_json(file.text, "model " + std::string(file.name)));
    }
    return all;
  }();
  return models;
}

const Transformer& find_transformer(std::string_view name) {
  return find_named(known_transformers(), name, "model",
                    "A model's config.json has a name that ends in .json.");
}

}  // namespace ringlab::model
