// Whatever a plugin does beside computing is a verdict, and this process lives on.
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>

#include "property_tests/laws/trial.h"
#include "property_tests/plugins/scarcity.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"
#include "tests/property_tests/plugins/plugin_folder.h"
#include "tests/temporary_folder.h"

namespace ringlab::verify {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Misdeed {
  const char* mistake;
  const char* found;  ///< part of the message
  const char* law = "equals_reference";
  double deadline_s = 10;
};

std::ostream& operator<<(std::ostream& out, const Misdeed& misdeed) {
  return out << misdeed.mistake;
}

class MisbehavingPlugin : public ::testing::TestWithParam<Misdeed> {};

TEST_P(MisbehavingPlugin, gets_a_verdict_that_names_what_it_did) {
  const Misdeed& misdeed = GetParam();
  const Subject subject = plugin_with(
      misdeed.mistake, {.deadline_s = misdeed.deadline_s, .memory_bytes = std::int64_t{512} << 20});
  EXPECT_THAT(finding(subject, misdeed.law), HasSubstr(misdeed.found));
}

INSTANTIATE_TEST_SUITE_P(Crashes, MisbehavingPlugin,
                         ::testing::Values(Misdeed{"crash", "it crashed with SIGSEGV"},
                                           Misdeed{"divide", "it crashed with SIGFPE"},
                                           Misdeed{"stack", "it crashed with SIGSEGV"},
                                           Misdeed{"abort", "it crashed with SIGABRT"},
                                           Misdeed{"exit",
                                                   "it ended its process with exit code 0"}));

// Sanitizers need more addresses than any limit would leave.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Limits, MisbehavingPlugin,
                         ::testing::Values(Misdeed{
                             "memory", "it crashed with SIGABRT. Its last words: no more memory"}));
#endif

INSTANTIATE_TEST_SUITE_P(
    Hangs, MisbehavingPlugin,
    ::testing::Values(
        Misdeed{.mistake = "hang",
                .found = "it gave no answer within 0.5 s. Its last words: waiting / for ever",
                .deadline_s = 0.5},
        Misdeed{.mistake = "spin", .found = "it gave no answer within 0.5 s", .deadline_s = 0.5}));

INSTANTIATE_TEST_SUITE_P(
    Memory, MisbehavingPlugin,
    ::testing::Values(Misdeed{"past_the_end", "it wrote past the end of o"},
                      Misdeed{"before_the_start", "it wrote before the start of o"},
                      Misdeed{"far_past_the_end",
                              "it wrote past the end of lse (byte 20000 after it)"},
                      Misdeed{"read_past", "it read past the end of v (byte 16384 after it)"},
                      Misdeed{"input", "it wrote to its input k, byte 0"},
                      Misdeed{"unwritten", "unwritten, the first [batch "}));

INSTANTIATE_TEST_SUITE_P(
    Manners, MisbehavingPlugin,
    ::testing::Values(Misdeed{"rounding", "a changed floating-point mode behind: another rounding"},
#if defined(__x86_64__) || defined(__aarch64__)
                      Misdeed{"flush_to_zero",
                              "a changed floating-point mode behind: subnormals flushed to zero"},
#endif
                      Misdeed{"error", "it returned error 77: no such kernel"}));

INSTANTIATE_TEST_SUITE_P(
    Memories, MisbehavingPlugin,
    ::testing::Values(
        Misdeed{"previous", "exact"},
        Misdeed{.mistake = "by_address", .found = "exact", .law = "same_addresses"},
        Misdeed{.mistake = "by_first_bytes", .found = "exact", .law = "same_addresses"},
        Misdeed{.mistake = "by_both_ends", .found = "exact", .law = "same_addresses_middle"},
        Misdeed{
            .mistake = "clock", .found = "the same call after another one", .law = "same_call"}));

TEST(MisbehavingPluginTest, is_right_without_a_mistake) {
  const Subject subject = plugin_with("none");
  for (const char* law :
       {"equals_reference", "same_call", "same_addresses", "same_addresses_middle"}) {
    EXPECT_EQ(finding(subject, law, 20), "held") << law;
  }
}

TEST(MisbehavingPluginTest, that_looks_at_both_ends_of_its_inputs_is_found_by_one_law_alone) {
  for (const char* law : {"equals_reference", "same_call", "same_addresses"}) {
    EXPECT_EQ(finding(plugin_with("by_both_ends"), law), "held") << law;
  }
}

TEST(MisbehavingPluginTest, cannot_make_its_inputs_writable) {
  EXPECT_EQ(finding(plugin_with("unprotect"), "equals_reference", 20), "held");
}

// Where calls of the system cannot be filtered there is a process, and it is found.
TEST(MisbehavingPluginTest, leaves_no_process) {
  EXPECT_THAT(finding(plugin_with("fork"), "equals_reference"),
              AnyOf("held", HasSubstr("it left a process running")));
}

TEST(MisbehavingPluginTest, what_it_says_it_cannot_do_is_skipped) {
  EXPECT_THAT(finding(plugin_with("unsupported"), "equals_reference"),
              HasSubstr("skipped: every case was discarded: it says that it cannot"));
}

// Equal seeds give equal cases: somebody can have all the answers beforehand.
TEST(MisbehavingPluginTest, does_not_pass_by_looking_up_the_answers_of_another_verification) {
  for (const char* law : {"equals_reference", "U"}) {
    const TemporaryFolder folder;
    setenv("RINGLAB_TEST_MARK", (folder / "mark").c_str(), 1);
    const Subject subject = plugin_with("looks_up");
    EXPECT_EQ(finding(subject, law), "held");
    std::ofstream(folder / "mark") << "from now on";
    EXPECT_THAT(finding(subject, law), HasSubstr("exact")) << law;
  }
}

TEST(MisbehavingPluginTest, an_exception_out_of_c_is_reported) {
  EXPECT_THAT(finding(plugin_named("throwing"), "equals_reference"),
              HasSubstr("it threw an exception through its C interface: not a tile"));
}

TEST(MisbehavingPluginTest, one_that_always_hangs_is_no_longer_called_after_a_while) {
  const Subject subject = plugin_with("hang", {.deadline_s = 0.05, .lost_s = 0.5});
  const auto start = std::chrono::steady_clock::now();
  const SubjectVerdict verdict = verify_subject(subject, {.cases_per_law = 2});
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_FALSE(verdict.passed());
  EXPECT_LT(passed.count(), 100);
  int given_up = 0;
  for (const LawVerdict& law : verdict.laws) {
    given_up += law.skipped.find("is no longer called") != std::string::npos;
  }
  EXPECT_GT(given_up, 10);
}

TEST(MisbehavingPluginTest, a_crash_ends_one_call_and_the_next_one_is_answered) {
  Subject subject = plugin_with("crash");
  const Trial trial = make_trial({.shape = {.q_tokens = 2, .kv_tokens = 3}});
  EXPECT_THROW(run_trial(subject, trial), Error);
  setenv("RINGLAB_TEST_MISTAKE", "", 1);
  EXPECT_EQ(run_trial(subject, trial).output.out.size(), 2);
}

std::string load_error(const std::string& path) {
  try {
    plugin_subject(path);
    return "loaded";
  } catch (const Error& error) {
    return std::to_string(error.exit_code()) + " " + error.what();
  }
}

TEST(LoadingAPlugin, that_is_not_there_is_an_input_error) {
  EXPECT_THAT(load_error("/no/such/libplugin.so"), HasSubstr("3 plugin /no/such/libplugin.so"));
  EXPECT_THAT(load_error("/tmp/"), HasSubstr("found a folder"));
}

TEST(LoadingAPlugin, that_is_no_library_says_so) {
  const TemporaryFolder folder;
  const std::string path = folder / "libtext.so";
  std::ofstream(path) << "not an ELF file, but long enough to be looked at by the linker ........";
  EXPECT_THAT(load_error(path), HasSubstr("no ELF file"));
}

TEST(LoadingAPlugin, without_its_symbol_says_what_to_export) {
  EXPECT_THAT(load_error(plugin_path("no_entry")),
              HasSubstr("it exports no symbol ringlab_plugin_v1. Export"));
}

std::string load_error_with(const std::string& mistake) {
  setenv("RINGLAB_TEST_MISTAKE", mistake.c_str(), 1);
  return load_error(plugin_path("misbehaving"));
}

TEST(Deadlines, are_as_long_as_said_on_an_idle_machine_and_longer_on_a_busy_one) {
  EXPECT_EQ(plugins::patience(0.3, 2), 1);
  EXPECT_EQ(plugins::patience(2, 2), 1);
  EXPECT_EQ(plugins::patience(9, 2), 4.5);
  EXPECT_EQ(plugins::patience(1e3, 2), 8) << "a hang ends some time";
  EXPECT_GE(plugins::patience_here(), 1);
}

TEST(LoadingAPlugin, of_another_version_asks_for_a_build) {
  EXPECT_THAT(load_error_with("version"), HasSubstr("version 9 of the interface"));
  EXPECT_THAT(load_error_with("version"), HasSubstr("Build it again"));
  EXPECT_THAT(load_error_with("size"), HasSubstr("a ringlab_plugin of 16 bytes"));
}

TEST(LoadingAPlugin, that_crashes_is_an_environment_error) {
  EXPECT_THAT(load_error_with("crash_at_load"), HasSubstr("4 plugin "));
  EXPECT_THAT(load_error_with("crash_at_load"), HasSubstr("loading it crashed: SIGSEGV"));
}

TEST(LoadingAPlugin, whose_description_makes_no_sense_is_an_input_error) {
  EXPECT_THAT(load_error_with("no_dtypes"), HasSubstr("RINGLAB_DTYPE_BIT of one dtype at least"));
  EXPECT_THAT(load_error_with("silly_numerics"), HasSubstr("exp_error"));
  EXPECT_THAT(load_error_with("silly_stores"), HasSubstr("keys_per_store"));
}

}  // namespace
}  // namespace ringlab::verify
