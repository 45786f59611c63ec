// The same answers from a program written apart, in Python with mpmath: masks, heads, modifiers and
// gradients from their definitions, at 1500 bits.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "reference/precise/correctly_rounded.h"
#include "reference/precise/rounded_gradients.h"
#include "tests/reference/attention/random_case.h"
#include "tests/reference/attention/random_modifiers.h"
#include "tests/reference/io/io_testing.h"

namespace ringlab {
namespace {

constexpr const char* kChecker = R"(
from mpmath import mp, mpf, exp, log, tanh
mp.prec = 1500

def sees(text, i, j, queries, keys):
    p = i + keys - queries
    for term in text.split('+'):
        name, _, rest = term.partition(':')
        numbers = [10**9 if n == 'inf' else int(n) for n in rest.split(',')] if rest else []
        if name == 'causal':
            seen = j <= p
        elif name == 'window':
            seen = p - numbers[0] <= j <= p + numbers[1]
        elif name == 'prefix':
            seen = j < numbers[0] or j <= p
        elif name == 'documents':
            labels = [d for d, n in enumerate(numbers) for _ in range(n)]
            seen = 0 <= p < len(labels) and labels[p] == labels[j]
        else:
            assert name == 'full', term
            seen = True
        if not seen:
            return False
    return True

class Tensor:
    def __init__(self, shape, values):
        self.shape = shape
        self.values = [mpf(float.fromhex(v)) for v in values.split()]
    def row(self, b, h, t):
        n = self.shape[3]
        start = ((b * self.shape[1] + h) * self.shape[2] + t) * n
        return self.values[start:start + n]

def dot(a, b):
    return sum((x * y for x, y in zip(a, b)), mpf(0))

def check(case):
    q, k, v, do = (Tensor(*case[n]) for n in ('q', 'k', 'v', 'do'))
    batch, heads, queries, dim = q.shape
    keys, kv_heads = k.shape[2], k.shape[1]
    scale, cap = mpf(float.fromhex(case['scale'])), mpf(float.fromhex(case['softcap']))
    got = {n: Tensor(*case[n]) for n in ('o', 'lse', 'dq', 'dk', 'dv', 'dq_e', 'dk_e', 'dv_e')}
    grads = {n: {} for n in ('dq', 'dk', 'dv')}
    def add(name, key, vector):
        old = grads[name].get(key, [mpf(0)] * len(vector))
        grads[name][key] = [x + y for x, y in zip(old, vector)]
    for b in range(batch):
        for h in range(heads):
            g = h // (heads // kv_heads)
            for i in range(queries):
                seen = [j for j in range(keys) if sees(case['mask'], i, j, queries, keys)]
                if not seen:
                    continue
                score, steep = {}, {}
                for j in seen:
                    s = scale * dot(q.row(b, h, i), k.row(b, g, j))
                    steep[j] = mpf(1)
                    if cap:
                        t = tanh(s / cap)
                        s, steep[j] = cap * t, 1 - t * t
                    if case['slopes']:
                        s -= mpf(case['slopes'][h]) * abs(i + keys - queries - j)
                    score[j] = s
                total = sum(exp(s) for s in score.values())
                if case['sinks']:
                    total += exp(mpf(case['sinks'][h]))
                p = {j: exp(score[j]) / total for j in seen}
                out = [sum(p[j] * v.row(b, g, j)[c] for j in seen) for c in range(v.shape[3])]
                if not cap:
                    agree(got['o'].row(b, h, i), out)
                    agree(got['lse'].row(b, h, i), [log(total)])
                up = do.row(b, h, i)
                delta = dot(up, out)
                for j in seen:
                    ds = scale * steep[j] * p[j] * (dot(up, v.row(b, g, j)) - delta)
                    add('dq', (b, h, i), [ds * x for x in k.row(b, g, j)])
                    add('dk', (b, g, j), [ds * x for x in q.row(b, h, i)])
                    add('dv', (b, g, j), [p[j] * x for x in up])
    for name, rows in grads.items():
        for key, truth in rows.items():
            for x, error, t in zip(got[name].row(*key), got[name + '_e'].row(*key), truth):
                assert abs(x - t) <= error * (1 + mpf(2)**-40) + mpf(2)**-1300, (name, key, x, t)

compared = 0
def agree(rounded, truth):
    global compared
    for x, t in zip(rounded, truth):
        if abs(t) < mpf(2)**-1300:
            assert x == 0, (x, t)
        else:
            # A tie, which 1500 bits cannot tell, lies equally far from both of its neighbours.
            assert abs(t - x) <= abs(t - float(t)) + mpf(2)**-1200, (float(x), t)
        compared += 1

for case in cases:
    check(case)
print(compared)
assert compared > 500
)";

/// "((1, 2, 3, 4), '0x1p+0 …')", without rounding.
std::string literal(const Tensor<double>& tensor) {
  std::ostringstream text;
  const Extents& e = tensor.extents();
  text << "((" << e.batch << "," << e.heads << "," << e.tokens << "," << e.channels << "), '";
  for (const double x : tensor.values()) text << std::hexfloat << x << ' ';
  text << "')";
  return text.str();
}

std::string literal(const std::vector<double>& numbers) {
  std::string text = "[";
  char number[40];
  for (const double x : numbers) {
    std::snprintf(number, sizeof number, "float.fromhex('%a'),", x);
    text += number;
  }
  return text + "]";
}

std::string literal(const testing::RandomCase& c) {
  const AttentionInput input = c.input();
  const Modifiers& modifiers = c.problem.modifiers;
  std::ostringstream text;
  CorrectlyRounded rounded{
      Tensor<double>(c.problem.shape.out()), Tensor<double>(c.problem.shape.lse()), {}};
  if (modifiers.softcap == 0) {
    rounded = correctly_rounded_forward(
        input, {.dtype = DType::f64, .first_try = FirstTry::multiprecision});
  }
  const RoundedGradients gradients = rounded_backward(input, c.dout.view(), DType::f64);
  text << "dict(mask='" << c.problem.mask.text() << "', scale='" << std::hexfloat << c.problem.scale
       << "', softcap='" << modifiers.softcap << "', slopes=" << literal(modifiers.alibi_slopes)
       << ", sinks=" << literal(modifiers.sinks);
  const std::pair<const char*, const Tensor<double>*> tensors[] = {
      {"q", &c.tensors.q},           {"k", &c.tensors.k},
      {"v", &c.tensors.v},           {"do", &c.dout},
      {"o", &rounded.out},           {"lse", &rounded.lse},
      {"dq", &gradients.dq},         {"dk", &gradients.dk},
      {"dv", &gradients.dv},         {"dq_e", &gradients.dq_error},
      {"dk_e", &gradients.dk_error}, {"dv_e", &gradients.dv_error}};
  for (const auto& [name, tensor] : tensors) text << ",\n  " << name << "=" << literal(*tensor);
  text << ")";
  return text.str();
}

bool runs(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Mpmath, gives_the_same_rounded_values_and_gradients_within_their_errors) {
  if (!runs("/usr/bin/python3 -c 'import mpmath' 2> /dev/null")) {
    GTEST_SKIP() << "/usr/bin/python3 cannot import mpmath";
  }
  std::string program = "cases = [\n";
  int cases = 0;
  for (std::uint64_t seed = 0; cases < 60; ++seed) {
    testing::RandomCase c =
        testing::modified_case(seed, {.tokens = 5, .dim = 3, .dtype = DType::f64});
    c.problem.modifiers.dropout = 0;  // a generator of random numbers of its own is not the point
    if (seed % 2 == 0) c.problem.modifiers = {};
    if (c.problem.mask.has_bits()) continue;
    program += literal(c) + ",\n";
    ++cases;
  }
  TemporaryFolder folder;
  io::put(folder / "program.py", program + "]\n" + kChecker);
  const std::string log = (folder / "log.txt").string();
  EXPECT_TRUE(
      runs("/usr/bin/python3 '" + (folder / "program.py").string() + "' > '" + log + "' 2>&1"))
      << io::get(log);
}

}  // namespace
}  // namespace ringlab
