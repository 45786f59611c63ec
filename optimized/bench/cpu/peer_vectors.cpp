#include "optimized/bench/cpu/peer_vectors.h"

#include <map>

#include "optimized/cpu/vectors.h"

namespace ringlab::bench {

Environment keep_to(const std::string& vectors) {
  static const std::map<std::string, Environment> all = {
      {"avx512_bf16",
       {{"MKL_ENABLE_INSTRUCTIONS", "AVX512_E3"}, {"ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"}}},
      {"avx512", {{"MKL_ENABLE_INSTRUCTIONS", "AVX512"}, {"ONEDNN_MAX_CPU_ISA", "AVX512_CORE"}}},
      {"avx2",
       {{"ATEN_CPU_CAPABILITY", "avx2"},
        {"MKL_ENABLE_INSTRUCTIONS", "AVX2"},
        {"ONEDNN_MAX_CPU_ISA", "AVX2"},
        {"OPENBLAS_CORETYPE", "Haswell"}}}};
  const auto found = all.find(vectors);
  const bool chosen = vectors != cpu::available_vectors().front();
  return chosen && found != all.end() ? found->second : Environment();
}

}  // namespace ringlab::bench
