/* Scores with their modifiers, and the exponential. */
#include <math.h>

#include "tests/plugin_mistakes/row.h"

enum { kMostHeads = 1024 };
static double kept_slopes[kMostHeads];

void keep_slopes(const ringlab_call* call) {
  if (!RINGLAB_CALL_HAS(call, modifiers) || call->modifiers.alibi_slopes == NULL) return;
  const double* slopes = call->modifiers.alibi_slopes;
  if (slopes[0] == kept_slopes[0]) return;
  for (int64_t h = 0; h < call->q.extents[1] && h < kMostHeads; ++h) kept_slopes[h] = slopes[h];
}

void take_modifiers(row_t* row) {
  const ringlab_call* call = row->call;
  row->factor = 1;
  if (!RINGLAB_CALL_HAS(call, modifiers)) return;
  const ringlab_modifiers* given = &call->modifiers;
  row->softcap = (float)given->softcap;
  if (IS(softcap_whole)) row->softcap = ceilf(row->softcap);
  if (given->alibi_slopes != NULL) {
    row->slope = (float)given->alibi_slopes[row->h];
    /* The customary slopes from the first of them. */
    if (IS(alibi_powers)) row->slope = powf((float)given->alibi_slopes[0], (float)(row->h + 1));
    if (IS(slopes_within_1) && row->slope > 1) row->slope = 1;
    if (IS(slopes_kept) && row->h < kMostHeads) row->slope = (float)kept_slopes[row->h];
  }
  row->has_sink = given->sinks != NULL;
  if (row->has_sink) row->sink = (float)given->sinks[row->h];
  if (IS(sinks_within_4)) row->sink = fminf(4, fmaxf(-4, row->sink));
  if (given->kept != NULL) {
    const int64_t queries = call->q.extents[2];
    row->kept =
        given->kept + ((row->b * call->q.extents[1] + row->h) * queries + row->i) * row->keys;
    row->factor = (float)given->dropout_factor;
  }
}

static float dot(const row_t* row, const float* q, const float* k) {
  int64_t d = row->d;
  if (IS(tail_of_channels) && d > 64) d = d / 64 * 64;
  if (IS(tf32) || IS(tf32_declared)) {
    float sum = 0;
    for (int64_t c = 0; c < d; ++c) sum += rounded_to(q[c], 11) * rounded_to(k[c], 11);
    return sum;
  }
  float sum = 0, lost = 0;
  double wide = 0;
  for (int64_t c = 0; c < d; ++c) {
    if (IS(double_sums)) {
      wide += (double)q[c] * k[c];
    } else if (IS(compensated)) {
      const float term = q[c] * k[c] - lost, next = sum + term;
      lost = next - sum - term;
      if (lost != lost) lost = 0; /* infinities leave nothing over */
      sum = next;
    } else {
      sum += product(q[c], k[c]);
    }
  }
  return IS(double_sums) ? (float)wide : sum;
}

/* `slope_of_cap`, where wanted, is the derivative of the score by the scaled dot product. */
float score(const row_t* row, int64_t j, float* slope_of_cap) {
  float s = row->scale * dot(row, row->q, row->k + j * row->d);
  if (IS(bf16_queries) || IS(scaled_queries)) s = dot(row, row->rounded_q, row->k + j * row->d);
  const float far = row->slope * fabsf((float)(row->position - j));
  if (slope_of_cap != NULL) *slope_of_cap = 1;
  if (IS(softcap_after_alibi)) s -= far;
  if (row->softcap != 0) {
    const float t = tanhf(s / row->softcap);
    if (slope_of_cap != NULL && !IS(softcap_gradient)) *slope_of_cap = (1 - t) * (1 + t);
    s = row->softcap * t;
  }
  if (!IS(softcap_after_alibi)) s -= far;
  if (IS(nan_hidden) && s != s) s = -INFINITY;
  return s;
}

float share_kept(const row_t* row, int64_t j) {
  if (row->kept == NULL) return 1;
  return row->kept[IS(dropout_16_bits) ? (uint16_t)j : j] ? row->factor : 0;
}

/* 2^x by a polynomial of degree 3 in the fraction of x: a relative error of 1e-4. */
static float cubic_exp2(float x) {
  if (!(x > -126)) return x != x ? x : 0;
  const float whole = floorf(x), f = x - whole;
  const float two_to_f = 1 + f * (0.695143f + f * (0.227564f + f * 0.077119f));
  return ldexpf(two_to_f, (int)whole);
}

/* As vector units give products when they are told to flush. */
float product(float x, float y) {
  const float result = x * y;
  return IS(flushed) && fabsf(result) < 0x1p-126f ? 0 : result;
}

float weight_of(float exponent) {
  if (IS(exp2)) return exp2f(exponent * 1.44269504f);
  if (IS(cubic_exp) || IS(cubic_exp_declared)) return cubic_exp2(exponent * 1.44269504f);
  return expf(exponent);
}
