#include "property_tests/plugins/file_walls.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <sstream>

#include "property_tests/plugins/child_process.h"
#include "reference/core/machine/folder.h"
#include "reference/core/machine/machine_failure.h"

namespace ringlab::plugins {
namespace {

// Rights that came after the first version of Landlock, by their numbers: headers may be older.
constexpr std::uint64_t kRefer = 1u << 13, kTruncate = 1u << 14;
constexpr std::uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWriteFile = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr std::uint64_t kMake = LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                LANDLOCK_ACCESS_FS_MAKE_SYM | kRefer;
constexpr std::uint64_t kNever = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | kWriteFile;

/// Libraries, programs, and what tells of the machine and its processes.
constexpr const char* kSystemFolders[] = {"/usr",
                                          "/bin",
                                          "/sbin",
                                          "/lib",
                                          "/lib32",
                                          "/lib64",
                                          "/opt",
                                          "/nix",
                                          "/proc",
                                          "/sys",
                                          "/run/opengl-driver"};
/// Settings of libraries; neither passwords nor keys.
constexpr const char* kSettings[] = {
    "ld.so.cache", "ld.so.conf",   "ld.so.conf.d", "localtime", "timezone",    "nsswitch.conf",
    "passwd",      "group",        "hosts",        "host.conf", "resolv.conf", "services",
    "protocols",   "os-release",   "alternatives", "OpenCL",    "vulkan",      "fonts",
    "mime.types",  "locale.alias", "python3*"};
/// Devices without contents, and those that compute.
constexpr const char* kDevices[] = {"null",    "zero",    "full", "random",
                                    "urandom", "nvidia*", "dri",  "kfd"};
/// Variables with folders of libraries, of headers and of Python's modules.
constexpr const char* kPathVariables[] = {"LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH",
                                          "PYTHONPATH",      "PYTHONHOME",   "VIRTUAL_ENV",
                                          "CONDA_PREFIX",    "CUDA_HOME"};

class Ruleset {
 public:
  Ruleset() {
    const long version =
        syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return;
    handled_ = kRead | kWriteFile | kMake | kNever;
    if (version < 2) handled_ &= ~kRefer;
    if (version < 3) handled_ &= ~kTruncate;
    landlock_ruleset_attr rules{};
    rules.handled_access_fs = handled_;
    ruleset_ =
        File(static_cast<int>(syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0)));
    if (ruleset_.get() < 0) throw_if_of_machine(errno, "a Landlock domain");
  }

  /// Paths that are not there stay forbidden.
  void allow(const std::string& path, std::uint64_t rights) const {
    const File file = opened(path, O_PATH);
    if (file.get() < 0) return;
    struct stat about {};
    const bool is_folder = fstat(file.get(), &about) == 0 && S_ISDIR(about.st_mode);
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights & handled_ & (is_folder ? ~std::uint64_t{0} : kOfFiles);
    rule.parent_fd = file.get();
    syscall(SYS_landlock_add_rule, ruleset_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }
  /// Paths in a folder; names that end in * stand for all that begin so.
  void allow_in(const std::string& folder, std::span<const char* const> names,
                std::uint64_t rights) const {
    for (const std::string wanted : names) {
      if (!wanted.ends_with('*')) {
        allow(folder + wanted, rights);
        continue;
      }
      for (const std::string& name : names_in(folder)) {
        if (name.starts_with(wanted.substr(0, wanted.size() - 1))) allow(folder + name, rights);
      }
    }
  }
  bool enforce() const { return syscall(SYS_landlock_restrict_self, ruleset_.get(), 0) == 0; }

 private:
  std::uint64_t handled_ = 0;
  File ruleset_;
};

void allow_paths_between_colons(const Ruleset& rules, const char* paths) {
  std::istringstream rest(paths != nullptr ? paths : "");
  for (std::string path; std::getline(rest, path, ':');) {
    if (path.starts_with('/') && path != "/") rules.allow(path, kRead);
  }
}

}  // namespace

bool enter_domain(const FileLiberties& liberties) {
  const Ruleset rules;
  for (const char* folder : kSystemFolders) rules.allow(folder, kRead);
  rules.allow_in("/etc/", kSettings, kRead);
  rules.allow_in("/dev/", kDevices, kRead | kWriteFile);
  for (const char* variable : kPathVariables) {
    allow_paths_between_colons(rules, std::getenv(variable));
  }
  for (const std::string& path : liberties.readable) rules.allow(path, kRead);
  for (const std::string& path : liberties.listed) rules.allow(path, LANDLOCK_ACCESS_FS_READ_DIR);
  if (!liberties.scratch.empty()) rules.allow(liberties.scratch, kRead | kWriteFile | kMake);
  return rules.enforce();
}

}  // namespace ringlab::plugins
