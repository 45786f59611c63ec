#include "property_tests/plugins/confinement.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>

#include "property_tests/plugins/namespaces.h"
#include "property_tests/plugins/protocol.h"
#include "property_tests/plugins/supervisor.h"
#include "property_tests/plugins/system_calls.h"

namespace ringlab::plugins {
namespace {

// Sanitizers reserve terabytes of addresses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// A limit that foreign code cannot lift again.
void limit(int resource, std::int64_t value) {
  rlimit limits{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limits) != 0) return;
  limits.rlim_max = std::min<rlim_t>(static_cast<rlim_t>(value), limits.rlim_max);
  limits.rlim_cur = std::min(limits.rlim_cur, limits.rlim_max);
  setrlimit(static_cast<__rlimit_resource>(resource), &limits);
}

void limit_resources(const Confinement& wanted, const Namespaces& namespaces) {
  constexpr std::int64_t kMostProcesses = 4096;
  constexpr std::int64_t kMostFiles = 1024;
  limit(RLIMIT_CORE, 0);
  // Without a user namespace all processes of the user count, which others may have started.
  if (namespaces.users) limit(RLIMIT_NPROC, kMostProcesses);
  limit(RLIMIT_NOFILE, kMostFiles);
  limit(RLIMIT_MSGQUEUE, 0);
  limit(RLIMIT_FSIZE, wanted.file_bytes);
  signal(SIGXFSZ, SIG_IGN);  // a file that is too long is a failed write
  if (wanted.address_bytes > 0 && !kSanitized) limit(RLIMIT_AS, wanted.address_bytes);
  if (wanted.private_bytes > 0 && !kSanitized) limit(RLIMIT_DATA, wanted.private_bytes);
}

/// Makes the system end this process first where the machine's memory runs out all the same.
void go_first() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "1000", 4);
  close(file);
}

void drop_capabilities() {
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  syscall(SYS_capset, &header, none.data());
}

/// Sets the folders of temporary files and of caches.
void write_to_scratch(const std::string& scratch) {
  for (const char* variable : kScratchVariables) setenv(variable, scratch.c_str(), 1);
}

/// Moves to a group of its own without a terminal, in the same session: a new session would be a
/// group of the scheduler's (sched_autogroup), and each call would wait for a slice of time on a
/// busy machine.
void leave_terminal() {
  setpgid(0, 0);
  const int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return;
  ioctl(terminal, TIOCNOTTY);
  close(terminal);
}

void add(std::string& missing, bool is_there, const char* what) {
  if (!is_there) missing += (missing.empty() ? "" : ", ") + std::string(what);
}

/// Puts up the walls of this very process. Where a namespace is missing, system calls that reach
/// through its gap are refused, as far as possible.
std::string enclose(const Confinement& wanted, const Namespaces& namespaces) {
  std::string missing;
  FileLiberties files = wanted.files;
  go_first();  // /proc cannot be written later
  add(missing, namespaces.users, "a user namespace");
  add(missing, namespaces.processes, "a process namespace");
  add(missing, namespaces.network, "a network namespace");
  const bool read_only = namespaces.mounts && make_read_only();
  if (namespaces.mounts) {
    add(missing, mount_own_proc(), "a /proc of its own");
    limit_shared_memory(wanted.file_bytes);
    hide_terminals();
    files.scratch = kSharedMemory;
  }
  if (!files.scratch.empty()) write_to_scratch(files.scratch);
  if (namespaces.network) raise_loopback();
  limit_resources(wanted, namespaces);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  drop_capabilities();
  add(missing, enter_domain(files), "a Landlock domain");
  add(missing,
      refuse_system_calls({.processes = wanted.processes == Processes::refused,
                           .signals = !namespaces.processes,
                           .network = !namespaces.network,
                           .metadata = !read_only}),
      "a filter of system calls");
  return missing;
}

}  // namespace

std::string confine(const Confinement& wanted) {
  leave_terminal();
  close_range(kSocket + 1, ~0u, 0);
  const Namespaces namespaces = enter_namespaces();
  become_supervised(namespaces.processes ? Descendants::in_a_namespace : Descendants::adopted);
  return enclose(wanted, namespaces);
}

}  // namespace ringlab::plugins
