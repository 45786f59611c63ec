// Transformers from their config.json, as Hugging Face's hub has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/model/training/transformer.h"

namespace ringlab::model {

/// A configuration; keys that memory and time do not depend on are passed over, for files have many.
/// Kinds that are not known count as Llama does: a gated feed-forward network and no biases. Input
/// errors, with `where` and the key, for what is missing or makes no sense, and for attention that
/// is not modelled (latent keys and values, shared experts).
Transformer transformer_of_json(std::string_view text, const std::string& where);

/// transformer_of_json() of a file of at most 1 MiB.
Transformer read_transformer(const std::string& path);

/// Models that are named, one for each file of reference/model/transformers.
const std::vector<Transformer>& known_transformers();
/// Usage error that lists the names.
const Transformer& find_transformer(std::string_view name);

/// The files of reference/model/transformers, as they were when the program was built.
struct TransformerText {
  std::string_view name;
  std::string_view text;
};
const std::vector<TransformerText>& transformer_texts();

}  // namespace ringlab::model
