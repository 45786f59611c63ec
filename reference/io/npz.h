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

/// The bytes of NAME.npy for those of `wanted` that the archive has; their headers are checked as
/// locate_npy() does. Input error for what is no archive, a name that is there twice, checksums that
/// differ, and more than `max_bytes`: of the archive, or of the files together. What the archive says
/// of sizes is compared with what it has before memory is taken for it.
std::map<std::string, std::vector<std::byte>> read_npz(const std::filesystem::path& path,
                                                       const std::set<std::string>& wanted,
                                                       std::int64_t max_bytes);

/// read_npz() of an archive in memory; `name` is for messages.
std::map<std::string, std::vector<std::byte>> parse_npz(const std::vector<std::byte>& packed,
                                                        const std::set<std::string>& wanted,
                                                        std::int64_t max_bytes,
                                                        const std::string& name);

}  // namespace ringlab::io
