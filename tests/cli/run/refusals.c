// What a machine may refuse, to be preloaded: RINGLAB_REFUSE=KIND:FIRST:COUNT:PROGRAM refuses the
// requests number FIRST … FIRST + COUNT - 1 of a kind (memory, threads, descriptors; of files: create,
// write, grow, sync, rename, folder; names: rename, where nothing can be exchanged) that PROGRAM makes
// once its main() has begun. RINGLAB_KILL: the number of a signal that each of them sends to the
// program; each writes a byte to the descriptor RINGLAB_TOLD, where that is given.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static char kind;  // 0 until main() begins, and where nothing is refused
static long first, count;
static int kills;  // 0, or a signal
static int told = -1;
static atomic_long asked;

static int refuses(char of) {
  if (kind != of) return 0;
  const long number = atomic_fetch_add(&asked, 1);
  const int refused = number >= first && number - first < count;
  if (refused && told >= 0) syscall(SYS_write, told, "r", 1);
  if (refused && kills) raise(kills);
  return refused;
}

static int (*real_main)(int, char**, char**);

static int main_with_refusals(int argc, char** argv, char** environment) {
  const char* const wish = getenv("RINGLAB_REFUSE");
  char word[32], program[64];
  const int found = wish ? sscanf(wish, "%31[a-z]:%ld:%ld:%63s", word, &first, &count, program) : 0;
  if (found == 4 && strcmp(program, program_invocation_short_name) == 0) kind = word[0];
  if (getenv("RINGLAB_KILL")) kills = atoi(getenv("RINGLAB_KILL"));
  if (getenv("RINGLAB_TOLD")) told = atoi(getenv("RINGLAB_TOLD"));
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void* stack_end) {
  typedef int (*Start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
                       void (*)(void), void*);
  const Start start = (Start)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = program;
  return start(main_with_refusals, argc, argv, init, fini, rtld_fini, stack_end);
}

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static void* no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

void* malloc(size_t bytes) { return refuses('m') ? no_memory() : __libc_malloc(bytes); }
void* calloc(size_t number, size_t bytes) {
  return refuses('m') ? no_memory() : __libc_calloc(number, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return refuses('m') ? no_memory() : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return refuses('m') ? no_memory() : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (refuses('m')) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  return refuses('t') ? EAGAIN : REAL(pthread_create)(thread, attributes, body, argument);
}
int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[],
                char* const environment[]) {
  if (refuses('t')) return EAGAIN;
  return REAL(posix_spawn)(process, path, actions, attributes, arguments, environment);
}

static int no_descriptor(void) {
  errno = EMFILE;
  return -1;
}
static int opening_is_refused(int flags) {
  const int creates = (flags & O_CREAT) != 0 && refuses('c');
  errno = creates ? ENOSPC : EMFILE;
  return creates || refuses('d');
}

static mode_t mode_of(int flags, va_list* rest) {
  return (flags & O_CREAT) != 0 ? va_arg(*rest, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, &rest);
  va_end(rest);
  return opening_is_refused(flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, &rest);
  va_end(rest);
  return opening_is_refused(flags) ? -1 : REAL(open64)(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  if (!refuses('d')) return REAL(fopen)(path, mode);
  no_descriptor();
  return NULL;
}
FILE* fopen64(const char* path, const char* mode) {
  if (!refuses('d')) return REAL(fopen64)(path, mode);
  no_descriptor();
  return NULL;
}
int socketpair(int domain, int type, int protocol, int ends[2]) {
  return refuses('d') ? no_descriptor() : REAL(socketpair)(domain, type, protocol, ends);
}
int memfd_create(const char* name, unsigned flags) {
  return refuses('d') ? no_descriptor() : REAL(memfd_create)(name, flags);
}

static int refused_by_disk(char of, int code) {
  if (!refuses(of)) return 0;
  errno = code;
  return 1;
}
// Pipes and terminals, such as standard output, are not on a disk.
static int is_file(int descriptor) {
  struct stat about;
  return fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

ssize_t write(int file, const void* bytes, size_t count_of_bytes) {
  if (is_file(file) && refused_by_disk('w', ENOSPC)) return -1;
  return REAL(write)(file, bytes, count_of_bytes);
}
ssize_t pwrite(int file, const void* bytes, size_t count_of_bytes, off_t at) {
  if (is_file(file) && refused_by_disk('w', ENOSPC)) return -1;
  return REAL(pwrite)(file, bytes, count_of_bytes, at);
}
ssize_t pwrite64(int file, const void* bytes, size_t count_of_bytes, off64_t at) {
  if (is_file(file) && refused_by_disk('w', ENOSPC)) return -1;
  return REAL(pwrite64)(file, bytes, count_of_bytes, at);
}
int ftruncate(int file, off_t bytes) {
  return refused_by_disk('g', ENOSPC) ? -1 : REAL(ftruncate)(file, bytes);
}
int fsync(int file) { return refused_by_disk('s', EIO) ? -1 : REAL(fsync)(file); }
int rename(const char* from, const char* to) {
  return refused_by_disk('r', EIO) || refused_by_disk('n', EIO) ? -1 : REAL(rename)(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (kind == 'n') errno = EINVAL;
  if (kind == 'n' || refused_by_disk('r', EIO)) return -1;
  return REAL(renameat2)(from_folder, from, to_folder, to, flags);
}
int mkdir(const char* path, mode_t mode) {
  return refused_by_disk('f', ENOSPC) ? -1 : REAL(mkdir)(path, mode);
}
