// Every file of the fuzzers' corpus, and every file one edit away from it, keeps the laws.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/parser_laws.h"

namespace ringlab::io {
namespace {

std::vector<std::vector<std::byte>> corpus(const std::string& parser) {
  std::vector<std::vector<std::byte>> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RINGLAB_CORPUS) / parser)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.push_back(bytes_of_text({std::istreambuf_iterator<char>(file), {}}));
  }
  return files;
}

/// Accepted and rejected files among the corpus itself.
template <class Laws>
void replay(const std::string& parser, const Laws& laws) {
  int accepted = 0;
  int rejected = 0;
  for (const std::vector<std::byte>& bytes : corpus(parser)) {
    ++(laws(bytes) ? accepted : rejected);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      std::vector<std::byte> edited = bytes;
      for (const int value : {0x00, 0x01, 0x30, 0x7f, 0x80, 0xff}) {
        edited[at] = static_cast<std::byte>(value);
        laws(edited);
      }
      laws({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)});
    }
  }
  EXPECT_GE(accepted, 4) << parser;
  EXPECT_GE(rejected, 2) << parser;
}

TEST(FuzzCorpus, npy_files_and_their_neighbours_keep_the_laws) { replay("npy", npy_laws); }

TEST(FuzzCorpus, safetensors_files_and_their_neighbours_keep_the_laws) {
  replay("safetensors", safetensors_laws);
}

}  // namespace
}  // namespace ringlab::io
