// What a reader of .npz archives must do with any bytes at all.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "reference/io/npz.h"
#include "tests/fuzz/parser_laws.h"

namespace ringlab::io {

/// Rejects with an input error, or gives files that are wanted, that together fit the limit and are
/// no more than can have been packed, and whose headers fit their sizes. Returns whether there was
/// one that holds a tensor.
inline bool npz_laws(const std::vector<std::byte>& bytes) {
  constexpr std::size_t kLimit = 1 << 20;
  constexpr std::size_t kMostOfDeflate = 1100;
  const std::set<std::string> wanted = {"q", "k", "v", "do"};
  std::map<std::string, std::vector<std::byte>> files;
  if (!fuzz::accepts(ErrorKind::input, [&] { files = parse_npz(bytes, wanted, kLimit, "fuzz"); })) {
    return false;
  }
  bool has_tensor = false;
  std::size_t unpacked = 0;
  for (const auto& [name, file] : files) {
    require(wanted.contains(name));
    require(file.size() <= bytes.size() * kMostOfDeflate);
    unpacked += file.size();
    locate_npy(file, std::ssize(file), "fuzz");
    has_tensor |= npy_laws(file);
  }
  require(unpacked <= kLimit);
  return has_tensor;
}

}  // namespace ringlab::io
