// The vectors that the CPU kernels compute with.
#pragma once

#include <string>
#include <vector>

namespace ringlab::cpu {

namespace bf16_dot {
struct Products;
}

/// The vectors that this build has and this processor can, widest first: of "avx512_amx" and
/// "avx512_bf16" (AVX-512 whose kernels for bf16 multiply bf16, see bf16_dot.h, as matrices or in
/// vectors), "avx512", "avx2" (with FMA) and "scalar"; on Arm "neon".
std::vector<std::string> available_vectors();
/// The vectors that kernels use from the next call on; the widest available unless chosen.
std::string vectors_in_use();
/// Usage error for a name that is not available.
void use_vectors(const std::string& name);

/// The products of bf16 numbers for vectors_in_use(); null when its kernels widen bf16 to f32.
const bf16_dot::Products* bf16_products_in_use();

/// The sizes that the forward kernel is fastest with: a few tiles of queries share each block of
/// keys that stays in the first-level cache.
inline constexpr int kTileQueries = 192;
inline constexpr int kTileKeys = 128;

}  // namespace ringlab::cpu
