// Measures the laws: the mutants that they kill, and false alarms about correct stages.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {

/// Kills of an earlier run, which are tried first; everything else is tried if they fail.
struct KnownKills {
  std::map<std::string, std::string> first_laws = {};  ///< law ids by mutant id
  std::map<std::string, std::string> examples = {};    ///< mutant ids by law id
};

struct MatrixOptions {
  std::uint64_t seed = 1;
  int threads = 2;
  int correct_cases = 20600;  ///< drawn for correct subjects, over all laws; some are discarded
  bool full = false;          ///< every law against every mutant, not only until one kills
  bool shrink = true;         ///< a case that kills is made simpler: only records show it
  KnownKills known = {};
  /// Called from one thread at a time with the phase and how far it is.
  std::function<void(const std::string& phase, int done, int total)> progress;
};

/// The first failure that gave one mutant away.
struct Kill {
  std::string law;  ///< id of the first law that broke
  int cases = 0;    ///< cases run until then, over all laws
  verify::Case shrunk;
  std::string token;
  std::string message;  ///< of the shrunk case
  bool threw = false;   ///< found because it threw, not by what the law says
  int shrinks = 0;
};

struct MutantRecord {
  MutantInfo info;
  std::optional<Kill> kill;          ///< none: it survived
  int cases = 0;                     ///< run in all
  std::vector<std::string> killers;  ///< full runs: every law that broke by what it says
};

struct LawRecord {
  std::string id, name;
  bool exact = false;
  int first_kills = 0;  ///< mutants that this law was the first to break on
  int kills = 0;        ///< known kills by what the law says; all there are in full runs
  int thrown = 0;       ///< mutants that threw under it, which any law would have noticed
  std::string example;  ///< one mutant that it kills by what it says; empty: there is none
};

/// A law that blamed a correct stage, or a legal variant of one.
struct FalseAlarm {
  std::string subject, law, token, message;
};

struct KillMatrix {
  std::vector<MutantRecord> mutants;
  std::vector<LawRecord> laws;
  std::vector<FalseAlarm> false_alarms;
  int correct_subjects = 0;  ///< stages and their legal variants
  int correct_cases = 0;     ///< that held on them
  double worst_ratio = 0;    ///< largest error / bound among them
  int skipped_pairs = 0;     ///< (subject, law) pairs that do not apply
  double seconds = 0;
  int killed() const;
  std::vector<std::string> survivors() const;
  std::vector<std::string> useless_laws() const;
  /// No survivor, no false alarm, no law without a kill.
  bool passed() const;
};

KillMatrix measure_kill_matrix(const MatrixOptions& options);
/// Hunts mutants part - 1, part - 1 + parts, … alone, where all of them would take too long.
std::vector<MutantRecord> hunt_part(const MatrixOptions& options, int part, int parts);

/// 95 % Wilson score interval of a rate (Wilson 1927). {0, 1} for no trials.
struct RateInterval {
  double low = 0, high = 1;
};
RateInterval wilson_interval(int successes, int trials);

}  // namespace ringlab::mutants
