// A Landlock domain for foreign code: the files that it may read, and where it may write.
#pragma once

#include <string>
#include <vector>

namespace ringlab::plugins {

/// Files that foreign code may use, besides those of the system.
struct FileLiberties {
  std::vector<std::string> readable = {};  ///< files, and folders with all that is in them
  std::vector<std::string> listed = {};    ///< folders whose names may be read, not their files
  std::string scratch = {};                ///< a folder to write in; empty: there is none
};

/// Enters a domain for good, with all threads and processes to come. Inside, libraries and settings
/// of the system and `liberties.readable` can be read, and files be made and changed in
/// `liberties.scratch` alone, whoever owns others; devices that compute or have no contents are
/// open. No process outside can be traced, nor its memory be opened under /proc. Descriptors that
/// are open stay so. False on machines without Landlock.
bool enter_domain(const FileLiberties& liberties);

}  // namespace ringlab::plugins
