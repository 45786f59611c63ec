#include "cli/verify_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <random>
#include <thread>

#include "cli/progress.h"

namespace ringlab::cli {
namespace {

using report::SubjectResult;

// Why a subject cannot take this input; empty when it can.
std::string input_obstacle(const verify::Subject& subject, const Problem& problem,
                           const RunOptions& options) {
  if (options.ranks > 1 && !subject.can.many_ranks && !subject.can.foreign) {
    return "runs on one rank only";
  }
  return verify::obstacle(subject.can, problem);
}

SubjectResult on_input(const verify::Subject& subject, const LoadedInput& loaded,
                       RunOptions options, const std::vector<std::int64_t>& rows) {
  SubjectResult result;
  // The implementations of others are compared on as many ranks as they know.
  if (subject.can.foreign && !subject.can.many_ranks) options.ranks = 1;
  result.subject = subject;
  result.input_skipped = input_obstacle(subject, loaded.problem, options);
  if (!result.input_skipped.empty()) return result;
  result.profile = subject.profile(loaded.problem, options);
  try {
    result.on_input = verify::verify_input(subject, loaded.input(), options, rows);
  } catch (const verify::Unsupported& reason) {
    result.input_skipped = reason.what();
  }
  return result;
}

// Laws done over all subjects, from several threads.
class SharedProgress {
 public:
  SharedProgress(std::size_t subjects, Progress& progress) : done_(subjects), progress_(progress) {}
  void update(std::size_t subject, int done, int total, const std::string& label) {
    const std::lock_guard lock(mutex_);
    done_[subject] = done;
    int sum = 0;
    for (const int one : done_) sum += one;
    progress_.update(sum, total * static_cast<int>(done_.size()), label);
  }

 private:
  std::mutex mutex_;
  std::vector<int> done_;
  Progress& progress_;
};

void verify_laws_of(SubjectResult& result, std::size_t index, verify::VerifyOptions options,
                    SharedProgress& shared) {
  const std::string name = result.subject.name;
  options.progress = [&shared, index, name](int done, int total, const std::string& law) {
    shared.update(index, done, total, name + " " + law);
  };
  result.laws = verify::verify_subject(result.subject, options);
}

// Workers take the next subject until none is left; the first exception is rethrown here.
void verify_laws(std::vector<SubjectResult>& results, const verify::VerifyOptions& options) {
  Progress progress("laws");
  SharedProgress shared(results.size(), progress);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto worker = [&] {
    try {
      for (std::size_t i = next++; i < results.size(); i = next++) {
        verify_laws_of(results[i], i, options, shared);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = results.size();
    }
  };
  std::vector<std::thread> threads;
  const std::size_t count =
      std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), results.size());
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back(worker);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<SubjectResult> verify_subjects(const VerifyPlan& plan, const LoadedInput& loaded,
                                           const RunOptions& options) {
  const std::vector<std::int64_t> rows =
      sample_rows(loaded.problem.shape.q_tokens, plan.sampled_rows, plan.laws.seed);
  std::vector<SubjectResult> results;
  {
    Progress progress("on the input");
    for (const verify::Subject& given : plan.subjects) {
      progress.update(static_cast<int>(results.size()), static_cast<int>(plan.subjects.size()),
                      given.name + " on the input");
      results.push_back(on_input(verify::on_device(given, options.device), loaded, options, rows));
    }
  }
  verify_laws(results, plan.laws);
  return results;
}

std::vector<std::int64_t> sample_rows(std::int64_t tokens, std::int64_t count, std::uint64_t seed) {
  if (tokens <= count) return {};
  std::vector<std::int64_t> rows = {0};
  std::mt19937_64 random(seed);
  for (std::int64_t part = 0; part < count - 2; ++part) {
    const std::int64_t inner = tokens - 2;
    const std::int64_t begin = 1 + inner * part / (count - 2);
    const std::int64_t size = 1 + inner * (part + 1) / (count - 2) - begin;
    rows.push_back(begin + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size)));
  }
  if (count > 1) rows.push_back(tokens - 1);
  return rows;
}

}  // namespace ringlab::cli
