#include "property_tests/sha256.h"

#include <fmt/ranges.h>
#include <nettle/version.h>

#include <array>
#include <cstdint>

namespace ringlab::verify {

Sha256::Sha256() { sha256_init(&state_); }

void Sha256::add(std::string_view bytes) {
  sha256_update(&state_, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

std::string Sha256::finish() {
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
#if NETTLE_VERSION_MAJOR < 4
  sha256_digest(&state_, digest.size(), digest.data());
#else
  sha256_digest(&state_, digest.data());
#endif
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

}  // namespace ringlab::verify
