/* The template of docs/plugins as kernels that are right and unusual: which, says the environment
 * variable RINGLAB_TEST_KERNEL. */
#define ringlab_plugin_v1 right_plugin
#include "docs/plugins/template/attention.c"
#undef ringlab_plugin_v1

#include <string.h>

enum { kParts = 4 };

static int is(const char* kernel) {
  const char* wanted = getenv("RINGLAB_TEST_KERNEL");
  return wanted != NULL && strcmp(wanted, kernel) == 0;
}

/* The part that comes as number `step`: in another order for each row of each call, as where blocks
 * of a device merge as they get ready. */
static int64_t part_at(int64_t step, int64_t turn) {
  return is("any_order") ? (turn % 2 ? step + turn : kParts - 1 - step + turn) % kParts : step;
}

/* (o, lse) of two parts become that of both, in f32. */
static void merge(float* o, float* lse, const float* part_o, float part_lse, int64_t v_dim) {
  if (part_lse == -INFINITY) return;
  const float top = *lse > part_lse ? *lse : part_lse;
  const float both = top + logf(expf(*lse - top) + expf(part_lse - top));
  const float kept = expf(*lse - both), added = expf(part_lse - both);
  for (int64_t c = 0; c < v_dim; ++c) o[c] = kept * o[c] + added * part_o[c];
  *lse = both;
}

/* One row in parts, each normalised, as kernels do that split the keys. */
static void attend_in_parts(const ringlab_call* call, const float* q, const float* k,
                            const float* v, int64_t begin, int64_t end, float* memory, float* o,
                            float* lse) {
  static int64_t turns = 0;
  const int64_t v_dim = call->v.extents[3], keys = call->k.extents[2], turn = turns++ / 3;
  float* part_o = memory + keys;
  for (int64_t c = 0; c < v_dim; ++c) o[c] = 0;
  *lse = -INFINITY;
  for (int64_t step = 0; step < kParts; ++step) {
    const int64_t part = part_at(step, turn);
    const int64_t first = begin + (end - begin) * part / kParts;
    const int64_t last = begin + (end - begin) * (part + 1) / kParts;
    float part_lse;
    attend_row(call, q, k, v, first, last, memory, part_o, &part_lse);
    merge(o, lse, part_o, part_lse, v_dim);
  }
}

/* Weights are divided before they meet V, from the last key to the first, in f64. */
static void attend_backwards(const ringlab_call* call, const float* q, const float* k,
                             const float* v, int64_t begin, int64_t end, float* o, float* lse) {
  const int64_t head_dim = call->q.extents[3], v_dim = call->v.extents[3];
  double top = -INFINITY, sum = 0;
  double scores[end - begin + 1];
  for (int64_t c = 0; c < v_dim; ++c) o[c] = 0;
  *lse = -INFINITY;
  if (begin == end) return;
  for (int64_t j = begin; j < end; ++j) {
    double dot = 0;
    for (int64_t c = 0; c < head_dim; ++c) dot += (double)q[c] * k[j * head_dim + c];
    scores[j - begin] = call->scale * dot;
    if (scores[j - begin] > top) top = scores[j - begin];
  }
  for (int64_t j = end - 1; j >= begin; --j) sum += exp(scores[j - begin] - top);
  for (int64_t c = 0; c < v_dim; ++c) {
    double out = 0;
    for (int64_t j = end - 1; j >= begin; --j) {
      out += exp(scores[j - begin] - top) / sum * v[j * v_dim + c];
    }
    o[c] = (float)out;
  }
  *lse = (float)(top + log(sum));
}

/* Adds a term to a compensated sum. Where that has overflowed nothing is lost: inf - inf would be NaN. */
static void add_compensated(float* sum, float* lost, float term) {
  const float more = term - *lost, next = *sum + more;
  *lost = isfinite(next) ? next - *sum - more : 0;
  *sum = next;
}

/* Compensated sums of weights and of weights times values. */
static void attend_compensated(const ringlab_call* call, const float* q, const float* k,
                               const float* v, int64_t begin, int64_t end, float* scores, float* o,
                               float* lse) {
  const int64_t head_dim = call->q.extents[3], v_dim = call->v.extents[3];
  float top = -INFINITY, sum = 0, lost = 0, lost_of[v_dim + 1];
  memset(lost_of, 0, sizeof(lost_of));
  for (int64_t c = 0; c < v_dim; ++c) o[c] = 0;
  *lse = -INFINITY;
  if (begin == end) return;
  for (int64_t j = begin; j < end; ++j) {
    scores[j] = (float)call->scale * dot(q, k + j * head_dim, head_dim);
    if (scores[j] > top) top = scores[j];
  }
  for (int64_t j = begin; j < end; ++j) {
    const float weight = expf(scores[j] - top);
    add_compensated(&sum, &lost, weight);
    for (int64_t c = 0; c < v_dim; ++c)
      add_compensated(o + c, lost_of + c, weight * v[j * v_dim + c]);
  }
  for (int64_t c = 0; c < v_dim; ++c) o[c] /= sum;
  *lse = top + logf(sum);
}

static int32_t legal_run(const ringlab_call* call, void* context) {
  (void)context;
  const float *q = call->q.data, *k = call->k.data, *v = call->v.data;
  float *o = call->o.data, *lse = call->lse.data;
  const int64_t heads = call->q.extents[1], queries = call->q.extents[2];
  const int64_t head_dim = call->q.extents[3], v_dim = call->v.extents[3];
  const int64_t kv_heads = call->k.extents[1], keys = call->k.extents[2];
  const int64_t rows = call->q.extents[0] * heads * queries;
  float* memory = malloc((size_t)(keys + v_dim + 1) * sizeof(float));
  if (memory == NULL) return 2;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = row % queries, h = row / queries % heads, b = row / queries / heads;
    const int64_t kv = b * kv_heads + h / (heads / kv_heads);
    const float* head_k = k + kv * keys * head_dim;
    const float* head_v = v + kv * keys * v_dim;
    const int64_t begin = call->mask.visible_begin[i], end = call->mask.visible_end[i];
    if (is("merging") || is("any_order")) {
      attend_in_parts(call, q + row * head_dim, head_k, head_v, begin, end, memory, o + row * v_dim,
                      lse + row);
    } else if (is("compensated")) {
      attend_compensated(call, q + row * head_dim, head_k, head_v, begin, end, memory,
                         o + row * v_dim, lse + row);
    } else {
      attend_backwards(call, q + row * head_dim, head_k, head_v, begin, end, o + row * v_dim,
                       lse + row);
    }
  }
  free(memory);
  return RINGLAB_OK;
}

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) {
  static ringlab_plugin legal;
  legal = plugin;
  ringlab_abilities* can = &legal.can;
  ringlab_numerics* numerics = &legal.numerics[RINGLAB_F32];
  if (is("merging")) {
    legal.run = legal_run;
    can->sums_keys_in_order = 0; /* parts end elsewhere */
    numerics->lse_merges = kParts - 1;
  }
  if (is("any_order")) {
    legal.run = legal_run;
    can->sums_keys_in_order = can->deterministic = 0;
    numerics->lse_merges = kParts - 1;
  }
  if (is("compensated")) {
    legal.run = legal_run;
    can->sums_keys_in_order =
        0; /* what was lost before is added with the next key, whatever its weight */
  }
  if (is("backwards")) {
    legal.run = legal_run;
    can->sums_keys_in_order = can->divides_last = 0;
  }
  if (is("wide")) can->head_dim_multiple = 64;
  if (is("one_width")) can->head_dim_multiple = can->max_head_dim = 64;
  if (is("square")) can->rectangular = 0;
  if (is("causal_square")) {
    can->rectangular = can->no_tokens = can->grouped_heads = can->other_v_dim = 0;
    can->masks = RINGLAB_MASK_CAUSAL;
  }
  if (is("least")) {
    memset(can, 0, sizeof(*can));
    can->dtypes = RINGLAB_DTYPE_BIT(RINGLAB_F32);
    can->empty_rows = can->lse = 1; /* claimed, though no query is without a key */
  }
  if (is("coarse")) numerics->u_accumulate = 0.05;
  if (is("coarse_parts")) {
    numerics->u_partial = 0.4;
    numerics->lse_merges = 1000000;
  }
  return &legal;
}
