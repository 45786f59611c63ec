// The header of a .npy file: a Python dictionary literal, read by a grammar of its own and never
// evaluated. Source: numpy.lib.format, versions 1.0, 2.0 and 3.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringlab::io {

struct NpyHeader {
  std::string descr;  ///< "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads `{'descr': STRING, 'fortran_order': True|False, 'shape': (N, …)}` in any order of keys,
/// each exactly once, followed by nothing but white space. Anything else is an input error that
/// says at which byte. `where` is for messages.
NpyHeader parse_npy_header(std::string_view text, const std::string& where);

/// The header as numpy writes it, without the padding.
std::string npy_header_text(const NpyHeader& header);

}  // namespace ringlab::io
