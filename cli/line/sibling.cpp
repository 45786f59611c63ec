#include "cli/line/sibling.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "property_tests/plugins/child_process.h"
#include "reference/core/error.h"

namespace ringlab::cli {

void become_sibling(const std::string& name, const std::vector<std::string>& words) {
  const std::string path = plugins::program_folder() + "/" + name;
  std::vector<std::string> owned = words;
  owned.insert(owned.begin(), path);
  std::vector<char*> arguments;
  for (std::string& word : owned) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  const int why = errno;
  throw_environment_error({.where = "the program " + name,
                           .expected = path,
                           .actual = std::strerror(why),
                           .hint = "Build it: cmake --build build --target " + name + "."});
}

}  // namespace ringlab::cli
