#include "property_tests/plugins/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "property_tests/plugins/child_process.h"

namespace ringlab::plugins {
namespace {

constexpr int kOwn = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS;

bool write_to(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_written = write(file, text.data(), text.size()) == std::ssize(text);
  close(file);
  return is_written;
}

/// Gives the namespace the same user and group as outside, and no other.
void keep_identity(uid_t user, gid_t group) {
  const auto itself = [](unsigned id) {
    return std::to_string(id) + " " + std::to_string(id) + " 1";
  };
  // An identity that is not mapped owns no files: nothing would work.
  if (!write_to("/proc/self/setgroups", "deny") || !write_to("/proc/self/uid_map", itself(user)) ||
      !write_to("/proc/self/gid_map", itself(group))) {
    _exit(4);
  }
}

}  // namespace

Namespaces enter_namespaces() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  for (const int flags :
       {CLONE_NEWUSER | CLONE_NEWNET | kOwn, CLONE_NEWUSER | kOwn, CLONE_NEWNET | kOwn, kOwn}) {
    if (unshare(flags) != 0) continue;
    const bool users = (flags & CLONE_NEWUSER) != 0;
    if (users) keep_identity(user, group);
    const bool mounts = mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
    return {.users = users,
            .processes = true,
            .network = (flags & CLONE_NEWNET) != 0,
            .mounts = mounts};
  }
  return {};
}

// As in <linux/mount.h>, which does not go with <sys/mount.h> of every C library.
bool make_read_only() {
  constexpr unsigned kReadOnly = 1, kRecursive = 0x8000;
  const struct {
    std::uint64_t set, clear, propagation, user_namespace;
  } attributes{kReadOnly, 0, 0, 0};
  return syscall(SYS_mount_setattr, AT_FDCWD, "/", kRecursive, &attributes, sizeof(attributes)) ==
         0;
}

bool mount_own_proc() {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
  return mount("proc", "/proc", "proc", kFlags, nullptr) == 0;
}

void limit_shared_memory(std::int64_t bytes) {
  const std::string size = "mode=1777,size=" + std::to_string(bytes);
  mount("tmpfs", kSharedMemory, "tmpfs", MS_NOSUID | MS_NODEV, size.c_str());
}

void raise_loopback() {
  const File any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", sizeof(loopback.ifr_name));
  loopback.ifr_flags = IFF_UP;
  ioctl(any.get(), SIOCSIFFLAGS, &loopback);
}

void hide_terminals() { mount("tmpfs", "/dev/pts", "tmpfs", MS_RDONLY, "size=4k"); }

}  // namespace ringlab::plugins
