/* The template of docs/plugins, right, but in every call it also tries to get out of its process or
 * at the one that judges it: how, says the environment variable RINGLAB_TEST_MISTAKE. What it got
 * hold of it reports as an error. RINGLAB_TEST_JUDGE is the process id of the judge. */
#define _GNU_SOURCE
#define ringlab_plugin_v1 right_plugin
#include "docs/plugins/template/attention.c"
#undef ringlab_plugin_v1

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static int is(const char* mistake) {
  const char* wanted = getenv("RINGLAB_TEST_MISTAKE");
  return wanted != NULL && strcmp(wanted, mistake) == 0;
}

static pid_t judge(void) {
  const char* number = getenv("RINGLAB_TEST_JUDGE");
  return number != NULL ? (pid_t)atoi(number) : getppid();
}

static void of_judge(char* path, size_t size, const char* file) {
  snprintf(path, size, "/proc/%d/%s", (int)judge(), file);
}

/* Each returns what it got hold of, or NULL. */
static const char* with_signals(void) {
  const int signals[] = {0, SIGSTOP, SIGTERM};
  for (int i = 0; i < 3; ++i) {
    if (kill(judge(), signals[i]) == 0) return "a signal to its judge";
  }
  if (kill(-1, SIGWINCH) == 0 && judge() == getppid()) return "a signal to everybody";
  int pipes[2];
  if (pipe(pipes) == 0) {
    const int owns = fcntl(pipes[0], F_SETOWN, judge());
    close(pipes[0]);
    close(pipes[1]);
    if (owns == 0) return "signals of a descriptor";
  }
  return NULL;
}

static const char* with_tracing(void) {
  if (ptrace(PTRACE_SEIZE, judge(), NULL, NULL) == 0) return "its judge traced";
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {(void*)&environ, 1};
  if (process_vm_readv(judge(), &here, 1, &there, 1, 0) == 1) return "memory of its judge";
  return NULL;
}

static const char* with_proc(void) {
  char path[64];
  const char* files[] = {"environ", "mem", "maps", "fd/0", "cwd/."};
  for (int i = 0; i < 5; ++i) {
    of_judge(path, sizeof(path), files[i]);
    const int file = open(path, O_RDONLY);
    if (file < 0) continue;
    close(file);
    return "/proc of its judge";
  }
  return NULL;
}

static const char* with_other_processes(void) {
  int others = 0;
  DIR* processes = opendir("/proc");
  for (struct dirent* entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
    const int process = atoi(entry->d_name);
    others += process > 1 && process != getpid();
  }
  if (processes != NULL) closedir(processes);
  return others > 0 ? "other processes in /proc" : NULL;
}

static const char* with_descriptors(void) {
  for (int i = 4; i < 1024; ++i) {
    if (fcntl(i, F_GETFD) != -1) return "a descriptor";
  }
  return NULL;
}

static const char* with_environment(void) {
  if (getenv("SOMEBODYS_TOKEN") != NULL) return "the environment";
  char text[65536];
  const int file = open("/proc/self/environ", O_RDONLY);
  const ssize_t size = file < 0 ? 0 : read(file, text, sizeof(text));
  close(file);
  return memmem(text, size > 0 ? (size_t)size : 0, "SOMEBODYS", 9) ? "the old environment" : NULL;
}

static const char* with_memory(void) {
  const int file = memfd_create("nobodys", 0);
  if (file >= 0) {
    close(file);
    return "memory that is nobody's";
  }
  return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 ? "memory of a key" : NULL;
}

static const char* with_files_in_memory(void) {
  struct statvfs shared;
  const int64_t room = (int64_t)1 << 30;
  if (statvfs("/dev/shm", &shared) != 0) return NULL;
  return (int64_t)(shared.f_blocks * shared.f_frsize) > room ? "memory in files" : NULL;
}

static const char* with_limits(void) {
  struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  const int limits[] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE};
  for (int i = 0; i < 3; ++i) {
    if (setrlimit(limits[i], &none) == 0) return "its limits";
  }
  return NULL;
}

static const char* with_network(void) {
  const char* port = getenv("RINGLAB_TEST_PORT");
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  if (s < 0) return NULL;
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_port = htons((uint16_t)(port != NULL ? atoi(port) : 22));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connects = connect(s, (struct sockaddr*)&address, sizeof(address));
  close(s);
  return connects == 0 ? "the network" : NULL;
}

/* Sockets with a name in the file system, where somebody listens: by a socket, by a family of which
 * the kernel reads the lower half, by a pair that is connected anew. */
static const char* with_local_socket(void) {
  const char* path = getenv("RINGLAB_TEST_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (path != NULL) strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  int pair[2] = {-1, -1};
  (void)!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  const int tried[] = {socket(AF_UNIX, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0),
                       (int)syscall(SYS_socket, (1ul << 32) | AF_UNIX, SOCK_STREAM, 0), pair[0]};
  for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); ++i) {
    if (connect(tried[i], (struct sockaddr*)&address, sizeof(address)) == 0) {
      return "a socket of this machine";
    }
    if (errno == EPROTOTYPE) return "a socket of this machine, of another kind";
  }
  for (int family = 0; family < 64; ++family) {
    if (family == AF_INET || family == AF_INET6 || family == AF_NETLINK) continue;
    if (socket(family, SOCK_STREAM, 0) >= 0 || errno != EPERM) return "a family of sockets";
  }
  return NULL;
}

/* Files of others, those of root for root too. */
static const char* with_files_of_others(void) {
  const char* mine[] = {getenv("RINGLAB_TEST_PRIVATE"),
                        getenv("RINGLAB_TEST_LINK"),
                        "/etc/shadow",
                        "/root/.bashrc",
                        "/dev/sda",
                        "/dev/vda",
                        "/proc/kcore"};
  for (size_t i = 0; i < sizeof(mine) / sizeof(*mine); ++i) {
    const int file = mine[i] == NULL ? -1 : open(mine[i], O_RDONLY);
    if (file < 0) continue;
    close(file);
    return "a file of others";
  }
  return NULL;
}

/* Files by which the kernel is told what to do. */
static const char* with_kernel_settings(void) {
  const char* files[] = {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                         "/proc/self/oom_score_adj", "/sys/kernel/mm/transparent_hugepage/enabled"};
  for (size_t i = 0; i < sizeof(files) / sizeof(*files); ++i) {
    if (open(files[i], O_WRONLY) >= 0) return files[i];
  }
  return NULL;
}

static const char* with_writing(void) {
  const char* places[] = {getenv("RINGLAB_TEST_PRIVATE"), "/tmp/ringlab-cheat",
                          "/var/tmp/ringlab-cheat", "ringlab-cheat"};
  for (size_t i = 0; i < sizeof(places) / sizeof(*places); ++i) {
    const int file =
        places[i] == NULL ? -1 : open(places[i], O_WRONLY | (i >= 1 ? O_CREAT : 0), 0600);
    if (file < 0) continue;
    close(file);
    return "a file to write";
  }
  if (mkdir("/tmp/ringlab-cheats", 0700) == 0 || symlink("/", "/tmp/ringlab-cheat") == 0) {
    return "a name in a folder";
  }
  const char* mine = getenv("RINGLAB_TEST_PRIVATE");
  if (mine != NULL && (truncate(mine, 0) == 0 || unlink(mine) == 0)) return "the end of a file";
  return NULL;
}

/* Owners, modes, times and attributes of a file of others, and of one that may be read. */
static const char* with_metadata(void) {
  const char* path = getenv("RINGLAB_TEST_PRIVATE");
  if (path == NULL) return NULL;
  const int file = open(path, O_PATH);
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  if (chmod(path, 0666) == 0 || chmod(link, 0666) == 0) return "a mode";
  if (syscall(452 /* fchmodat2 */, AT_FDCWD, path, 0666, 0) == 0) return "a mode, by a newer call";
  if (chown(path, 0, 0) == 0) return "an owner";
  if (utimensat(AT_FDCWD, path, NULL, 0) == 0) return "a time";
  if (setxattr(path, "user.ringlab", "", 0, 0) == 0) return "an attribute";
  const char* beside = getenv("RINGLAB_TEST_BESIDE");
  const int own = beside == NULL ? -1 : open(beside, O_RDONLY);
  if (own >= 0 && (fchmod(own, 0666) == 0 || futimens(own, NULL) == 0)) return "its own library";
  if (inotify_add_watch(inotify_init1(0), path, IN_ACCESS) >= 0) return "a watch";
  return NULL;
}

static const char* with_privileges(void) {
  if (syscall(SYS_unshare, CLONE_NEWUSER) == 0) return "a namespace";
  if (mknod("/tmp/ringlab-cheat", S_IFBLK | 0600, 0) == 0) return "a device";
  if (setuid(0) == 0 && getuid() != 0) return "root";
  return NULL;
}

/* Contents beside those of files: attributes, and what leases and watches tell. */
static const char* with_attributes(void) {
  const char* path = getenv("RINGLAB_TEST_PRIVATE");
  char text[64] = "";
  if (path == NULL) return NULL;
  if (getxattr(path, "user.ringlab", text, sizeof(text)) >= 0) return "an attribute";
  const struct {
    uint64_t value;
    uint32_t size, flags;
  } wanted = {(uint64_t)(uintptr_t)text, sizeof(text), 0};
  if (syscall(464 /* getxattrat */, AT_FDCWD, path, 0, "user.ringlab", &wanted, sizeof(wanted)) >= 0) {
    return "an attribute, by a newer call";
  }
  if (listxattr(path, text, sizeof(text)) >= 0) return "names of attributes";
  if (fcntl(open("/proc/self/exe", O_RDONLY), F_SETLEASE, F_RDLCK) == 0) return "a lease";
  if (fcntl(open("/usr", O_RDONLY), F_NOTIFY, DN_ACCESS) == 0) return "a watch on a folder";
  return NULL;
}

/* Ways around names, filters and memory that the kernel has. */
static const char* with_kernel(void) {
  const char* path = getenv("RINGLAB_TEST_PRIVATE");
  struct {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
  } handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
  int number = 0;
  if (path != NULL && name_to_handle_at(AT_FDCWD, path, &handle.head, &number, 0) == 0 &&
      open_by_handle_at(open("/usr", O_RDONLY), &handle.head, O_RDONLY) >= 0) {
    return "a file by its handle";
  }
  char zeros[256] = "";
  if (syscall(SYS_io_uring_setup, 4, zeros) >= 0) return "a ring of system calls";
  if (syscall(SYS_add_key, "user", "ringlab", "x", 1, -4) >= 0) return "a key of the kernel";
  if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || chroot("/tmp") == 0) return "a mount";
  struct rlimit limit;
  if (prlimit(judge(), RLIMIT_CORE, NULL, &limit) == 0) return "limits of its judge";
  return NULL;
}

static const char* with_terminals(void) {
  char path[64] = "/dev/tty";
  for (int i = -1; i < 64; ++i) {
    if (i >= 0) snprintf(path, sizeof(path), "/dev/pts/%d", i);
    const int terminal = open(path, O_WRONLY | O_NOCTTY);
    if (terminal < 0) continue;
    close(terminal);
    return "a terminal";
  }
  return NULL;
}

/* A daemon as it is in the books, which would leave a mark. */
static const char* with_daemon(void) {
  const char* mark = getenv("RINGLAB_TEST_MARK");
  const pid_t child = fork();
  if (child < 0) return NULL;
  if (child > 0) return "a process";
  setsid();
  if (fork() != 0) _exit(0);
  sleep(1);
  close(open(mark, O_CREAT | O_WRONLY, 0600));
  for (;;) pause();
}

static const char* with_program(void) {
  char* const words[] = {(char*)"true", NULL};
  execv("/bin/true", words); /* a way to end with 0, too */
  return errno == ENOENT ? "a program" : NULL;
}

static void hang(void) {
  for (;;) pause();
}

static const char* got(void) {
  if (is("signals")) return with_signals();
  if (is("tracing")) return with_tracing();
  if (is("proc")) return with_proc();
  if (is("descriptors")) return with_descriptors();
  if (is("environment")) return with_environment();
  if (is("memory")) return with_memory();
  if (is("files_in_memory")) return with_files_in_memory();
  if (is("other_processes")) return with_other_processes();
  if (is("limits")) return with_limits();
  if (is("network")) return with_network();
  if (is("local_socket")) return with_local_socket();
  if (is("files_of_others")) return with_files_of_others();
  if (is("kernel_settings")) return with_kernel_settings();
  if (is("writing")) return with_writing();
  if (is("metadata")) return with_metadata();
  if (is("attributes")) return with_attributes();
  if (is("kernel")) return with_kernel();
  if (is("privileges")) return with_privileges();
  if (is("terminals")) return with_terminals();
  if (is("daemon")) return with_daemon();
  if (is("program")) return with_program();
  if (is("leaves_its_group")) {
    char* const words[] = {(char*)"sleep", (char*)"1000", NULL};
    if (setpgid(0, getpgid(getppid())) != 0) setsid();
    execv("/bin/sleep", words);
    hang();
  }
  if (is("stops_its_group")) {
    kill(0, SIGSTOP);
    hang();
  }
  if (is("ignores_its_end")) {
    prctl(PR_SET_PDEATHSIG, 0);
    for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
    hang();
  }
  if (is("ends_itself")) kill(getpid(), SIGKILL);
  if (is("exits_quickly")) _exit(0);
  if (is("hangs_up")) {
    shutdown(3, SHUT_RDWR);
    close(3);
  }
#if defined(__x86_64__)
  if (is("speaks_32_bits")) __asm__ volatile("int $0x80" : : "a"(20 /* getpid */) : "memory");
  if (is("speaks_x32")) (void)syscall(0x40000000 | SYS_getpid);
#endif
  if (is("talks")) {
    static const char noise[9000];
    (void)!send(3, noise, sizeof(noise), 0);
    (void)!send(3, noise, 1, 0);
  }
  return NULL;
}

static int32_t cheating_run(const ringlab_call* call, void* context) {
  const char* found = got();
  if (found == NULL) return run(call, context);
  snprintf(call->message, call->message_size, "it got hold of %s", found);
  return 77;
}

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) {
  static ringlab_plugin cheating;
  cheating = plugin;
  cheating.run = cheating_run;
  if (is("exits_at_load")) _exit(0);
  return &cheating;
}
