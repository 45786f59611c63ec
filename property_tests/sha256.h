// SHA-256 (FIPS 180-4), by Nettle: a name for content. It shows changes, not who made them.
#pragma once

#include <nettle/sha2.h>

#include <string>
#include <string_view>

namespace ringlab::verify {

class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  /// The digest of all that was added, as 64 hexadecimal digits; add() may not follow.
  std::string finish();

 private:
  sha256_ctx state_;
};

std::string sha256(std::string_view bytes);

}  // namespace ringlab::verify
