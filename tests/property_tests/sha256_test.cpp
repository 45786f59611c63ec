#include "property_tests/sha256.h"

#include <gtest/gtest.h>

namespace ringlab::verify {
namespace {

// The examples of FIPS 180-4, and a million letters.
TEST(Sha256, gives_the_digests_of_the_standard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, does_not_depend_on_how_the_bytes_come_in) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i);
  for (const std::size_t cut : {0, 1, 55, 56, 63, 64, 65, 127, 128, 199, 200}) {
    Sha256 hash;
    hash.add(std::string_view(text).substr(0, cut));
    hash.add(std::string_view(text).substr(cut));
    EXPECT_EQ(hash.finish(), sha256(text)) << cut;
  }
}

}  // namespace
}  // namespace ringlab::verify
