#include "reference/core/machine/machine_failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <ios>
#include <new>
#include <stdexcept>
#include <system_error>

namespace ringlab {
namespace {

TEST(MachineFailure, is_what_ran_out_and_nothing_else) {
  EXPECT_TRUE(machine_failure(std::bad_alloc()));
  EXPECT_TRUE(machine_failure(MachineError({.where = "device 0"})));
  for (const int code : {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, EFBIG, EIO}) {
    EXPECT_TRUE(machine_failure(std::system_error(code, std::generic_category()))) << code;
    EXPECT_TRUE(machine_failure(std::system_error(code, std::system_category()))) << code;
  }
  for (const int code : {ENOENT, EACCES, EINVAL}) {
    EXPECT_FALSE(machine_failure(std::system_error(code, std::generic_category()))) << code;
  }
  EXPECT_FALSE(machine_failure(std::system_error(ENOMEM, std::iostream_category())));
  EXPECT_FALSE(machine_failure(std::runtime_error("out of memory")));
  EXPECT_FALSE(machine_failure(Error(ErrorKind::environment, {.where = "x"})));
}

TEST(MachineFailure, says_where_and_keeps_the_words_of_a_machine_error) {
  const std::string memory = machine_failure(std::bad_alloc(), "rank 3")->what();
  EXPECT_EQ(memory.find("rank 3: expected memory, found out of memory"), 0u) << memory;
  EXPECT_STREQ(machine_failure(MachineError({.where = "device 0", .actual = "lost"}))->what(),
               "device 0: lost");
}

TEST(MachineFailure, of_a_call_is_told_from_the_fault_of_a_caller) {
  EXPECT_THROW(throw_failed_call(ErrorKind::input, {.where = "x"}, EMFILE), MachineError);
  try {
    throw_failed_call(ErrorKind::input, {.where = "x"}, ENOENT);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.parts().actual, "No such file or directory");
  }
}

}  // namespace
}  // namespace ringlab
