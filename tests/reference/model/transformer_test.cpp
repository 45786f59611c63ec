#include "reference/model/training/transformer.h"

#include <gtest/gtest.h>

#include "reference/model/training/transformer_file.h"

namespace ringlab::model {
namespace {

// Counted by those who published the weights.
TEST(Transformer, has_as_many_parameters_as_its_weights) {
  const std::pair<const char*, std::int64_t> published[] = {{"llama-2-7b", 6'738'415'616},
                                                            {"llama-3.1-8b", 8'030'261'248},
                                                            {"llama-3.1-70b", 70'553'706'496},
                                                            {"llama-3.1-405b", 405'853'388'800},
                                                            {"mistral-7b", 7'241'732'096},
                                                            {"mixtral-8x7b", 46'702'792'704},
                                                            {"qwen2.5-7b", 7'615'616'512},
                                                            {"qwen2.5-72b", 72'706'203'648},
                                                            {"qwen3-8b", 8'190'735'360},
                                                            {"gemma-7b", 8'537'680'896},
                                                            {"gpt2", 124'439'808}};
  EXPECT_EQ(std::size(published), known_transformers().size());
  for (const auto& [name, count] : published) {
    EXPECT_EQ(parameter_count(find_transformer(name)), count) << name;
  }
}

}  // namespace
}  // namespace ringlab::model
