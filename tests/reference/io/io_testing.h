// Shared by the tests of reference/io: files by hand, expected errors.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/io/tensor_file.h"
#include "tests/temporary_folder.h"

namespace ringlab::io {

inline void put(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

inline std::string get(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::byte> as_bytes(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// `work` must throw an Error of this kind whose text holds every piece.
template <class Work>
void expect_error(ErrorKind kind, const std::vector<std::string>& pieces, Work&& work) {
  try {
    work();
    ADD_FAILURE() << "no error; expected one with " << (pieces.empty() ? "" : pieces.front());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& piece : pieces) {
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos)
          << "\"" << piece << "\" is missing in: " << error.what();
    }
  }
}

}  // namespace ringlab::io
