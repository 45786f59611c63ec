#include "property_tests/plugins/system_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

namespace ringlab::plugins {
namespace {

constexpr const char* kNobodys[] = {
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    // other namespaces, mounts and keys, and known ways out of them
    "unshare", "setns", "mount", "umount2", "move_mount", "open_tree", "open_tree_attr", "fsopen",
    "fspick", "mount_setattr", "pivot_root", "chroot", "keyctl", "add_key", "request_key", "bpf",
    "perf_event_open", "userfaultfd",
    // what others do to files
    "inotify_add_watch", "fanotify_init"};

// Changes of files that Landlock leaves alone.
constexpr const char* kMetadata[] = {
    "chmod",        "fchmod",        "fchmodat",    "fchmodat2",  "chown",       "fchown",
    "lchown",       "fchownat",      "utime",       "utimes",     "futimesat",   "utimensat",
    "setxattr",     "lsetxattr",     "fsetxattr",   "setxattrat", "removexattr", "lremovexattr",
    "fremovexattr", "removexattrat", "file_setattr"};

// Attributes are contents, which Landlock lets anybody read; many file systems have none.
constexpr const char* kAttributes[] = {"getxattr",  "lgetxattr",  "getxattrat",
                                       "listxattr", "llistxattr", "listxattrat"};

// Memory in no process's address space, which no limit counts; and calls whose arguments a filter
// cannot see. Libraries do without, as on older systems.
constexpr const char* kUnknown[] = {"memfd_create", "memfd_secret", "shmget", "io_uring_setup",
                                    "clone3"};

// Calls that a kernel may have and libseccomp not know yet; they have one number on all processors.
constexpr std::pair<std::string_view, int> kNew[] = {
    {"fchmodat2", 452},     {"setxattrat", 463},     {"getxattrat", 464},  {"listxattrat", 465},
    {"removexattrat", 466}, {"open_tree_attr", 467}, {"file_setattr", 469}};

int number_of(const char* name) {
  const int number = seccomp_syscall_resolve_name(name);
  const auto* known = std::ranges::find(kNew, name, [](const auto& call) { return call.first; });
  return number >= 0 || known == std::end(kNew) ? number : known->second;
}

class Filter {
 public:
  Filter() : filter_(seccomp_init(SCMP_ACT_ALLOW)) {}
  ~Filter() {
    if (filter_ != nullptr) seccomp_release(filter_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  void refuse(const char* name, int error = EPERM) { add(name, error, {}); }
  void refuse_if(const char* name, const scmp_arg_cmp& argument) { add(name, EPERM, {argument}); }
  bool load() { return filter_ != nullptr && is_whole_ && seccomp_load(filter_) == 0; }

 private:
  void add(const char* name, int error, std::initializer_list<scmp_arg_cmp> arguments) {
    const int number = number_of(name);
    if (filter_ == nullptr || number < 0) return;  // there is no such call on this machine
    const int failure =
        seccomp_rule_add_array(filter_, SCMP_ACT_ERRNO(error), number,
                               static_cast<unsigned>(arguments.size()), arguments.begin());
    is_whole_ = is_whole_ && failure == 0;
  }

  scmp_filter_ctx filter_;
  bool is_whole_ = true;
};

// The kernel reads these arguments as 32 bits: the others are not compared.
scmp_arg_cmp is(unsigned argument, scmp_datum_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, 0xffffffff, value};
}
scmp_arg_cmp is_not(unsigned argument, scmp_datum_t value) {
  return {argument, SCMP_CMP_NE, value, 0};
}
scmp_arg_cmp has(unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

// Refuses new processes; threads are allowed.
void refuse_processes(Filter& filter) {
  for (const char* name : {"fork", "vfork", "execve", "execveat"}) filter.refuse(name);
  filter.refuse_if("clone", has(0, CLONE_THREAD, 0));
}

/// Refuses all ways to have a signal sent to another process, and to outlive the supervisor.
void refuse_signals(Filter& filter) {
  const auto own = static_cast<scmp_datum_t>(getpid());
  for (const char* name : {"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}) {
    filter.refuse_if(name, is_not(0, own));
  }
  for (const char* name : {"tkill", "pidfd_send_signal"}) filter.refuse(name);
  for (const int command : {F_SETOWN, F_SETOWN_EX}) {
    filter.refuse_if("fcntl", is(1, static_cast<scmp_datum_t>(command)));
  }
  constexpr scmp_datum_t kOwnerRequests[] = {0x8901, 0x8902};  // FIOSETOWN, SIOCSPGRP
  for (const scmp_datum_t request : kOwnerRequests) filter.refuse_if("ioctl", is(1, request));
  filter.refuse_if("prlimit64", is_not(0, 0));
  for (const int option : {PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER}) {
    filter.refuse_if("prctl", is(0, static_cast<scmp_datum_t>(option)));
  }
}

/// Refuses sockets that reach through a network namespace: those with names in the file system, of
/// virtual machines, of devices. Pairs of sockets stay, but those that can be connected anew.
void refuse_sockets(Filter& filter, bool all) {
  constexpr int kFamilies = 64;  // more than the kernel has
  for (int family = 0; family < kFamilies; ++family) {
    const bool is_in_namespace = family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    if (all || !is_in_namespace)
      filter.refuse_if("socket", is(0, static_cast<scmp_datum_t>(family)));
  }
  constexpr scmp_datum_t kKind = 0xf;
  for (const int kind : {SOCK_DGRAM, SOCK_RAW}) {
    filter.refuse_if("socketpair", has(1, kKind, static_cast<scmp_datum_t>(kind)));
  }
}

}  // namespace

bool refuse_system_calls(const RefusedCalls& refused) {
  Filter filter;
  for (const char* name : kNobodys) filter.refuse(name);
  for (const char* name : kUnknown) filter.refuse(name, ENOSYS);
  for (const char* name : kAttributes) filter.refuse(name, ENOTSUP);
  // Others who open a file wait for a lease on it; F_NOTIFY watches a folder.
  for (const int command : {F_SETLEASE, F_NOTIFY}) {
    filter.refuse_if("fcntl", is(1, static_cast<scmp_datum_t>(command)));
  }
  filter.refuse_if("clone", has(0, CLONE_NEWUSER, CLONE_NEWUSER));
  if (refused.processes) refuse_processes(filter);
  if (refused.signals) refuse_signals(filter);
  refuse_sockets(filter, refused.network);
  if (refused.metadata) {
    for (const char* name : kMetadata) filter.refuse(name);
  }
  return filter.load();
}

}  // namespace ringlab::plugins
