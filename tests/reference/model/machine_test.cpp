#include "reference/model/machine.h"

#include <gtest/gtest.h>

#include <limits>

#include "reference/core/error.h"

namespace ringlab::model {
namespace {

TEST(Machines, that_are_known_have_sensible_figures_and_say_where_they_come_from) {
  for (const Machine& machine : known_machines()) {
    EXPECT_NO_THROW(check_machine(machine)) << machine.name;
    EXPECT_FALSE(machine.source.empty()) << machine.name;
    EXPECT_EQ(&find_machine(machine.name), &machine);
    EXPECT_LE(machine.backward_flops, machine.forward_flops) << machine.name;
  }
}

TEST(Machines, that_are_not_known_are_refused_with_the_names_of_those_that_are) {
  try {
    find_machine("h300");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what())
                  .find("h200, h100, h100-ringlab, h800, a100, b200, tpu-v4, tpu-v5e, pcie, "
                        "ethernet, laptop"),
              std::string::npos);
  }
}

TEST(Machines, with_figures_that_make_no_sense_are_refused) {
  const Machine good = known_machines().front();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto refuses = [&](auto change) {
    Machine machine = good;
    change(machine);
    EXPECT_THROW(check_machine(machine), Error);
  };
  for (const double bad : {0.0, -1.0, kNan}) {
    refuses([&](Machine& m) { m.forward_flops = bad; });
    refuses([&](Machine& m) { m.backward_flops = bad; });
    refuses([&](Machine& m) { m.memory_bytes = bad; });
    refuses([&](Machine& m) { m.memory_bytes_per_s = bad; });
    refuses([&](Machine& m) { m.inside.bytes_per_s = bad; });
    refuses([&](Machine& m) { m.outside.bytes_per_s = bad; });
  }
  for (const double bad : {-1.0, kNan, std::numeric_limits<double>::infinity()}) {
    refuses([&](Machine& m) { m.inside.latency_s = bad; });
    refuses([&](Machine& m) { m.outside.latency_s = bad; });
    refuses([&](Machine& m) { m.block_s = bad; });
    refuses([&](Machine& m) { m.merge_bytes = bad; });
  }
  refuses([](Machine& m) { m.node_ranks = 0; });
}

}  // namespace
}  // namespace ringlab::model
