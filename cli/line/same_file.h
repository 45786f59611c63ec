// Two paths and the file that they name, which need not be there yet.
#pragma once

#include <string>

namespace ringlab::cli {

/// True when both paths name one file: the same inode, or, where there is no file yet, the same
/// name in the same folder. Links are followed, dangling ones too.
bool same_file(const std::string& a, const std::string& b);

/// True when the path names a file or folder that is there.
bool is_there(const std::string& path);

}  // namespace ringlab::cli
