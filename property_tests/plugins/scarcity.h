// Resources that a machine lacks, found out by asking for them: a failure may be due to that.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::plugins {

/// True when this process cannot get 1 GiB of addresses more. Safe in a signal handler.
bool addresses_are_scarce();

/// Names of missing resources: "threads", "descriptors"; empty where both are there for a few dozen
/// more.
std::string scarce_here();

/// Times that a deadline is as long where more threads want to run than there are processors, by a
/// load and their number: 1 … 8.
double patience(double load, double processors);
/// The same by the load of this machine, over a minute.
double patience_here();

}  // namespace ringlab::plugins
