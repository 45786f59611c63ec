// .npz files: .npy files in a zip archive, as numpy.savez and numpy.savez_compressed write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ringlab::io {

/// The bytes of NAME.npy for those of `wanted` that the archive has. Input error for what is no
/// archive, a name that is there twice, checksums that differ, and more than `max_bytes`: of the
/// archive, or of one file in it.
std::map<std::string, std::vector<std::byte>> read_npz(const std::filesystem::path& path,
                                                       const std::set<std::string>& wanted,
                                                       std::int64_t max_bytes);

}  // namespace ringlab::io
