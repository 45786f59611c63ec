#include "reference/core/machine/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "reference/core/machine/machine_failure.h"

namespace ringlab {

// Neither std::filesystem nor glob(), which end the process where an allocation is refused.
std::vector<std::string> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  if (listing == nullptr) {
    throw_if_of_machine(errno, folder);
    return {};
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(listing.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace ringlab
