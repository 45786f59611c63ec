// Every file of the fuzzers' corpus, and every file one edit away from it, keeps the laws.
#include "tests/fuzz/corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/case_token_laws.h"
#include "tests/fuzz/command_line_laws.h"
#include "tests/fuzz/dlpack_laws.h"
#include "tests/fuzz/npz_laws.h"
#include "tests/fuzz/parser_laws.h"
#include "tests/fuzz/plugin_laws.h"

namespace ringlab::fuzz {
namespace {

TEST(FuzzCorpus, npy_files_and_their_neighbours_keep_the_laws) { replay("npy", io::npy_laws); }

TEST(FuzzCorpus, npz_archives_and_their_neighbours_keep_the_laws) { replay("npz", io::npz_laws); }

TEST(FuzzCorpus, safetensors_files_and_their_neighbours_keep_the_laws) {
  replay("safetensors", io::safetensors_laws);
}

TEST(FuzzCorpus, tokens_of_cases_and_their_neighbours_keep_the_laws) {
  replay("case_token", case_token_laws);
}

TEST(FuzzCorpus, command_lines_and_their_neighbours_keep_the_laws) {
  replay("command_line", command_line_laws);
}

TEST(FuzzCorpus, descriptions_of_arrays_and_their_neighbours_keep_the_laws) {
  replay("dlpack", dlpack_laws);
}

TEST(FuzzCorpus, replies_of_plugins_and_their_neighbours_keep_the_laws) {
  replay("plugin", plugin_laws);
}

}  // namespace
}  // namespace ringlab::fuzz
