// Plugins that try to get out of their process, or at the one that judges them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "property_tests/plugins/supervisor.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"
#include "tests/property_tests/plugins/plugin_folder.h"
#include "tests/temporary_folder.h"

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

Subject cheating_with(const std::string& cheat, const plugins::PluginOptions& options = {}) {
  setenv("RINGLAB_TEST_JUDGE", std::to_string(getpid()).c_str(), 1);
  setenv("RINGLAB_TEST_MISTAKE", cheat.c_str(), 1);
  return plugin_named("cheating", options);
}

/// A port of this machine where somebody listens.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(socket_.get(), 8);
    socklen_t size = sizeof(address);
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  plugins::File socket_;
  int port_ = 0;
};

/// A socket with a name where somebody listens.
class LocalListener {
 public:
  explicit LocalListener(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(socket_.get(), 8);
  }

 private:
  plugins::File socket_;
};

/// What a cheating plugin got hold of, "held" when that is nothing.
std::string loot_of(const std::string& cheat) {
  const plugins::File inherited(open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  EXPECT_GT(inherited.get(), 2);
  setenv("SOMEBODYS_TOKEN", "SOMEBODYS", 1);
  const Listener listener;
  const TemporaryFolder folder;
  const LocalListener local(folder / "socket");
  setenv("RINGLAB_TEST_SOCKET", (folder / "socket").c_str(), 1);
  std::ofstream(folder / "private") << "private";
  std::filesystem::permissions(folder / "private", std::filesystem::perms{0600});
  setxattr((folder / "private").c_str(), "user.ringlab", "private", 7, 0);
  setenv("RINGLAB_TEST_PRIVATE", (folder / "private").c_str(), 1);
  setenv("RINGLAB_TEST_PORT", std::to_string(listener.port()).c_str(), 1);
  return finding(cheating_with(cheat), "equals_reference", 3);
}

class CheatingPlugin : public ::testing::TestWithParam<const char*> {};

TEST_P(CheatingPlugin, gets_hold_of_nothing) { EXPECT_EQ(loot_of(GetParam()), "held"); }

INSTANTIATE_TEST_SUITE_P(Attempts, CheatingPlugin,
                         ::testing::Values("none", "signals", "tracing", "proc", "descriptors",
                                           "environment", "memory", "limits", "network",
                                           "local_socket", "files_of_others", "writing",
                                           "kernel_settings", "metadata", "attributes", "kernel",
                                           "privileges", "program", "talks"));

TEST(CheatingPluginTest, sees_nothing_outside_of_its_namespaces) {
  for (const char* cheat : {"other_processes", "files_in_memory"}) {
    const std::string loot = loot_of(cheat);
    if (!plugins::missing_walls().empty()) GTEST_SKIP() << "no " << plugins::missing_walls();
    EXPECT_EQ(loot, "held");
  }
}

TEST(CheatingPluginTest, leaves_no_daemon) {
  const TemporaryFolder folder;
  setenv("RINGLAB_TEST_MARK", (folder / "mark").c_str(), 1);
  EXPECT_EQ(finding(cheating_with("daemon"), "equals_reference", 3), "held");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(std::filesystem::exists(folder / "mark"));
}

TEST(CheatingPluginTest, does_not_escape_its_deadline) {
  for (const char* cheat : {"leaves_its_group", "ignores_its_end", "stops_its_group"}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(finding(cheating_with(cheat, {.deadline_s = 0.3}), "equals_reference", 1),
                HasSubstr("it gave no answer within 0.3 s"));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    EXPECT_LT(passed.count(), 100) << cheat;
  }
}

TEST(CheatingPluginTest, has_no_answer_when_it_ends) {
  EXPECT_THAT(finding(cheating_with("exits_quickly"), "equals_reference"),
              HasSubstr("it ended its process with exit code 0"));
  EXPECT_THAT(finding(cheating_with("ends_itself"), "equals_reference"),
              HasSubstr("it was ended by SIGKILL"));
  EXPECT_THAT(finding(cheating_with("hangs_up"), "equals_reference"), HasSubstr("it "));
}

#if defined(__x86_64__)
TEST(CheatingPluginTest, speaks_no_other_language_to_the_kernel) {
  for (const char* cheat : {"speaks_32_bits", "speaks_x32"}) {
    EXPECT_THAT(finding(cheating_with(cheat), "equals_reference"),
                HasSubstr("it was ended by SIGSYS"));
  }
}
#endif

// Exhausts memory in a copy of this process, which then has one process to end.
TEST(SupervisorTest, ends_children_where_no_memory_is_left) {
  const pid_t copy = fork();
  if (copy == 0) {
    const pid_t child = fork();
    if (child == 0) pause();
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_AS, &none);
    for (std::size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
      while (malloc(bytes) != nullptr) {
      }
    }
    _exit(plugins::end_children() == 1 && kill(child, 0) != 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(copy, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(CheatingPluginTest, that_ends_while_it_is_loaded_is_no_subject) {
  try {
    cheating_with("exits_at_load");
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 4);
    EXPECT_THAT(error.what(), HasSubstr("it ended its process with exit code 0"));
  }
}

}  // namespace
}  // namespace ringlab::verify
