/* The plugin: rows shared among threads, what it can do and the arithmetic that it promises. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugin_mistakes/row.h"

typedef struct {
  const ringlab_call* call;
  const packed_t* in;
  float *o, *lse; /* in f32, of all rows */
  int64_t first, last;
  int failed;
} part_t;

/* The caller's masks are those of the last call of this shape. */
static void from_memory(row_t* row) {
  static int64_t extents[8], begin[512], end[512];
  static uint32_t kinds;
  int64_t now[8];
  memcpy(now, row->call->q.extents, 4 * sizeof(int64_t));
  memcpy(now + 4, row->call->k.extents, 4 * sizeof(int64_t));
  if (row->call->q.extents[2] > 512) return;
  if (memcmp(now, extents, sizeof(now)) != 0 || kinds != row->call->mask.kinds) {
    memcpy(begin, row->call->mask.visible_begin, (size_t)now[2] * sizeof(int64_t));
    memcpy(end, row->call->mask.visible_end, (size_t)now[2] * sizeof(int64_t));
    memcpy(extents, now, sizeof(now));
    kinds = row->call->mask.kinds;
  }
  row->begin = begin[row->i];
  row->end = end[row->i];
}

static void* attend_rows(void* argument) {
  static float shared[4096];
  part_t* part = argument;
  const int64_t v_dim = part->call->v.extents[3], keys = part->call->k.extents[2];
  float* memory = malloc((size_t)(keys + v_dim + 1) * sizeof(float));
  part->failed = memory == NULL;
  for (int64_t n = part->first; !part->failed && n < part->last; ++n) {
    row_t row = row_of(part->call, part->in, n);
    if (IS(cache_by_shape)) from_memory(&row);
    float* scores = IS(shared_scores) && keys <= 4096 ? shared : memory;
    attend_row(&row, scores, part->o + n * v_dim, part->lse + n);
  }
  free(memory);
  return NULL;
}

enum { kMostThreads = 16 };

/* Each thread takes as many rows as the others, give or take one. */
static int attend(const ringlab_call* call, const packed_t* in, float* o, float* lse) {
  const int64_t rows = call->q.extents[0] * call->q.extents[1] * call->q.extents[2];
  const int threads = call->threads < kMostThreads ? call->threads : kMostThreads;
  part_t parts[kMostThreads];
  pthread_t started[kMostThreads];
  int failed = 0, running = 0;
  for (int t = 0; t < threads; ++t) {
    parts[t] = (part_t){call, in, o, lse, rows * t / threads, rows * (t + 1) / threads, 0};
    if (IS(threads_leave_a_row)) {
      parts[t].first = rows / threads * t;
      parts[t].last = rows / threads * (t + 1);
    }
  }
  for (int t = 1; t < threads; ++t, ++running) {
    if (pthread_create(&started[t], NULL, attend_rows, &parts[t]) != 0) return 0;
  }
  attend_rows(&parts[0]);
  for (int t = 1; t <= running; ++t) pthread_join(started[t], NULL);
  for (int t = 0; t < threads; ++t) failed |= parts[t].failed;
  return !failed;
}

static void store_rows(const ringlab_call* call, float* o, const float* lse) {
  const int64_t rows = call->q.extents[0] * call->q.extents[1] * call->q.extents[2];
  const int64_t v_dim = call->v.extents[3];
  static int calls;
  if (IS(one_call_in_fifty) && ++calls % 50 == 0 && rows > 0 && v_dim > 0) o[0] *= 1.01f;
  for (int64_t n = 0; n < rows * v_dim; ++n) {
    const int is_rounded = IS(rounded_with_gradients) && call->dout.data != NULL;
    store(&call->o, n, is_rounded ? rounded_to(o[n], 5) : o[n]);
  }
  float* stored = call->lse.data;
  for (int64_t n = 0; n < rows; ++n) stored[n] = IS(bf16_lse) ? rounded_to(lse[n], 8) : lse[n];
}

static void round_queries(const ringlab_call* call, packed_t* in) {
  const int64_t* n = call->q.extents;
  in->rounded_q = packed(call, &call->q);
  for (int64_t at = 0; in->rounded_q != NULL && at < n[0] * n[1] * n[2] * n[3]; ++at) {
    const float scaled = (float)call->scale * in->rounded_q[at];
    in->rounded_q[at] = IS(bf16_queries) ? rounded_to(scaled, 8) : scaled;
  }
}

static int32_t run(const ringlab_call* call, void* context) {
  (void)context;
  if (IS(refuses_wide) && call->q.extents[3] > 128) return RINGLAB_UNSUPPORTED;
  const int64_t rows = call->q.extents[0] * call->q.extents[1] * call->q.extents[2];
  const int backward = call->dout.data != NULL;
  packed_t in = {packed(call, &call->q), packed_k(call), packed(call, &call->v), NULL, NULL};
  if (IS(slopes_kept)) keep_slopes(call);
  if (backward) in.dout = packed(call, &call->dout);
  if (IS(bf16_queries) || IS(scaled_queries)) round_queries(call, &in);
  float* o = calloc((size_t)(rows * call->v.extents[3] + 1), sizeof(float));
  float* lse = calloc((size_t)(rows + 1), sizeof(float));
  int done = in.q && in.k && in.v && o && lse && (!backward || in.dout);
  done = done && attend(call, &in, o, lse);
  if (done) store_rows(call, o, lse);
  if (done && backward) done = differentiate(call, &in, o, lse);
  free(in.q);
  free(in.k);
  free(in.v);
  free(in.dout);
  free(in.rounded_q);
  free(o);
  free(lse);
  return done ? RINGLAB_OK : 2;
}

static ringlab_abilities abilities(void) {
  ringlab_abilities can = {
      .dtypes = RINGLAB_DTYPE_BIT(RINGLAB_F32) | RINGLAB_DTYPE_BIT(RINGLAB_BF16),
      .masks = RINGLAB_MASK_CAUSAL | RINGLAB_MASK_WINDOW | RINGLAB_MASK_DOCUMENTS |
               RINGLAB_MASK_PREFIX | RINGLAB_MASK_BYTES | RINGLAB_MASK_INTERSECTIONS,
      .lse = 1,
      .backward = 1,
      .grouped_heads = 1,
      .rectangular = 1,
      .other_v_dim = 1,
      .no_tokens = 1,
      .empty_rows = 1,
      .any_scale = 1,
      .strided_inputs = 1,
      .deterministic = 1,
      .masked_may_be_nan = 1,
      .same_bits_per_row = 1,
      .divides_last = 1,
      .threads = 1,
      .modifiers = RINGLAB_MODIFIER_SOFTCAP | RINGLAB_MODIFIER_ALIBI | RINGLAB_MODIFIER_SINKS |
                   RINGLAB_MODIFIER_DROPOUT};
  if (IS(divided_early)) can.divides_last = 0;
  if (IS(padded_heads)) can.head_dim_multiple = 64;
  return can;
}

static ringlab_numerics numerics(void) {
  ringlab_numerics promised = {.keys_per_rescale = IS(odd_tiles) ? 37 : 32};
  if (UNDECLARED) return promised;
  if (IS(two_passes) || IS(compensated)) promised.keys_per_rescale = INT64_MAX;
  if (IS(split_keys)) promised.lse_merges = 4;
  if (IS(tree)) promised.lse_merges = 64; /* levels of halves, and the sink */
  if (IS(divided_early)) {
    promised.keys_per_rescale = INT64_MAX;
    promised.exp_error = 0x1p-22 + 0x1p-24;
  }
  if (IS(bf16_queries)) promised.u_query = 0x1p-8;
  if (IS(scaled_queries)) promised.u_query = 0x1p-24;
  if (IS(f16_weights)) {
    promised.u_probability = promised.u_row_sum = 0x1p-11;
    promised.p_underflow = 0x1p-25;
  }
  if (IS(bf16_lse)) promised.u_lse = 0x1p-8;
  if (IS(bf16_dk)) promised.queries_per_store = 64;
  if (IS(flushed)) promised.product_underflow = 0x1p-126;
  if (IS(bf16_weights)) {
    promised.u_probability = promised.u_row_sum = 0x1p-8;
    promised.p_underflow = 0x1p-134;
  }
  if (IS(tf32_declared)) promised.u_product = 0x1p-11;
  if (IS(partial_bf16_declared)) {
    promised.u_partial = 0x1p-8;
    promised.product_underflow = 0x1p-133; /* the least bf16 */
  }
  if (IS(cubic_exp_declared)) promised.exp_error = 0x1p-12;
  return promised;
}

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) {
  static ringlab_plugin plugin;
  plugin = (ringlab_plugin){.struct_size = sizeof(ringlab_plugin),
                            .version = RINGLAB_PLUGIN_VERSION,
                            .name = "attention",
                            .title = "an online softmax over tiles of keys, with gradients",
                            .can = abilities(),
                            .run = run};
  plugin.numerics[RINGLAB_F32] = plugin.numerics[RINGLAB_BF16] = numerics();
  return &plugin;
}
