#include "tests/fuzz/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace ringlab::fuzz {
namespace {

std::vector<Bytes> corpus(const std::string& target) {
  std::vector<Bytes> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RINGLAB_CORPUS) / target)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.push_back(bytes_of_text({std::istreambuf_iterator<char>(file), {}}));
  }
  return files;
}

void try_neighbours(const Bytes& bytes, const std::function<bool(const Bytes&)>& laws) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes edited = bytes;
    for (const int value : {0x00, 0x01, 0x30, 0x7f, 0x80, 0xff}) {
      edited[at] = static_cast<std::byte>(value);
      laws(edited);
    }
    laws({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)});
  }
}

}  // namespace

void replay(const std::string& target, const std::function<bool(const Bytes&)>& laws) {
  int accepted = 0;
  int rejected = 0;
  for (const Bytes& bytes : corpus(target)) {
    ++(laws(bytes) ? accepted : rejected);
    try_neighbours(bytes, laws);
  }
  EXPECT_GE(accepted, 4) << target;
  EXPECT_GE(rejected, 2) << target;
}

}  // namespace ringlab::fuzz
