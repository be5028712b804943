/* What XLA calls for a convolution or product that oneDNN computes, and batch normalization for programs that run
 * without XLA. Nothing but a C compiler is needed to build it.
 *
 * Nothing here waits for Python's lock: XLA calls from threads of its own, also while the interpreter shuts down.
 * Sources: XLA's foreign function interface, version 0.3, a stable binary interface; the C API of oneDNN 3.
 */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* XLA's structures, as far as they are read here. */

enum { FFI_MAJOR = 0, FFI_MINOR = 3, EXTENSION_METADATA = 1, ERROR_INTERNAL = 13 };

typedef struct Error Error;

typedef struct {
  size_t size;
  void* extension;
  int major, minor;
} Version;

typedef struct {
  size_t size;
  Version version;
} Metadata;

typedef struct {
  size_t size;
  int type;
  void* next;
  Metadata* metadata; /* if it is of that type */
} Extension;

typedef struct {
  size_t size;
  void* extension;
  const char* message;
  int code;
} Failure;

typedef struct {
  size_t size;
  void* extension;
  Version version;
  void* internal;
  Error* (*fail)(Failure*);
} Api;

typedef struct {
  size_t size;
  void* extension;
  int dtype;
  void* data;
} Buffer;

typedef struct {
  size_t size;
  void* extension;
  int64_t count;
  void* types;
  Buffer** items;
} Buffers;

typedef struct {
  const char* data;
  size_t length;
} Text;

typedef struct {
  size_t size;
  void* extension;
  int64_t count;
  void* types;
  void* names;
  Text** items;
} Attributes;

typedef struct {
  size_t size;
  Extension* extension;
  const Api* api;
  void* context;
  int stage;
  Buffers args, rets;
  Attributes attrs;
} Frame;

/* The functions of oneDNN that are called, and its numbers for element types, kinds, roles and queries. */

typedef void* Handle;

typedef struct {
  int role;
  Handle memory;
} Argument;

#define FUNCTIONS(X)                                                                                                   \
  X(engine_create, (Handle*, int, size_t))                                                                             \
  X(stream_create, (Handle*, Handle, unsigned))                                                                        \
  X(stream_wait, (Handle))                                                                                             \
  X(primitive_attr_create, (Handle*))                                                                                  \
  X(primitive_attr_set_scratchpad_mode, (Handle, int))                                                                 \
  X(memory_desc_create_with_strides, (Handle*, int, const int64_t*, int, const int64_t*))                              \
  X(memory_desc_create_with_tag, (Handle*, int, const int64_t*, int, int))                                             \
  X(memory_desc_equal, (Handle, Handle))                                                                               \
  X(memory_desc_destroy, (Handle))                                                                                     \
  X(convolution_forward_primitive_desc_create, (Handle*, Handle, int, int, Handle, Handle, Handle, Handle,             \
    const int64_t*, const int64_t*, const int64_t*, const int64_t*, Handle))                                           \
  X(convolution_backward_data_primitive_desc_create, (Handle*, Handle, int, Handle, Handle, Handle,                    \
    const int64_t*, const int64_t*, const int64_t*, const int64_t*, Handle, Handle))                                   \
  X(convolution_backward_weights_primitive_desc_create, (Handle*, Handle, int, Handle, Handle, Handle, Handle,         \
    const int64_t*, const int64_t*, const int64_t*, const int64_t*, Handle, Handle))                                   \
  X(reorder_primitive_desc_create, (Handle*, Handle, Handle, Handle, Handle, Handle))                                  \
  X(primitive_desc_destroy, (Handle))                                                                                  \
  X(primitive_create, (Handle*, Handle))                                                                               \
  X(primitive_execute, (Handle, Handle, int, const Argument*))                                                         \
  X(primitive_destroy, (Handle))                                                                                       \
  X(memory_create, (Handle*, Handle, Handle, void*))                                                                   \
  X(memory_set_data_handle, (Handle, void*))                                                                           \
  X(memory_destroy, (Handle))                                                                                          \
  X(sgemm, (char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,         \
    float*, int64_t))

static struct {
#define DECLARE(name, arguments) int(*name) arguments;
  FUNCTIONS(DECLARE)
  size_t (*memory_desc_get_size)(Handle);
  Handle (*primitive_desc_query_md)(Handle, int, int);
  void (*run_team)(void (*)(void*), void*, unsigned, unsigned); /* of OpenMP, which oneDNN is linked to */
  int (*thread_number)(void), (*team_size)(void);
  void (*set_threads)(int);
} dnnl;

enum { CPU = 1, IN_ORDER = 1, FLOAT32 = 3, ANY = 1, DIRECT = 1, TRAINING = 64, CALLER = 1 };
enum { SRC = 1, DST = 17, WEIGHTS = 33, SCRATCHPAD = 80, DIFF_SRC = 129, DIFF_DST = 145, DIFF_WEIGHTS = 161 };
enum { SRC_MD = 129, DIFF_SRC_MD, WEIGHTS_MD, DIFF_WEIGHTS_MD, DST_MD, DIFF_DST_MD, SCRATCHPAD_MD = 136 };

static Handle engine, stream;
static Handle caller; /* attributes of all primitives: the memory they compute in is ours */

/* Plans: convolutions prepared by oneDNN for fixed shapes. */

enum { FORWARD, DATA, FILTERS, KINDS }; /* the result, or the gradient of the data or of the filters */
enum { MESSAGE = 512, LINE = 64, MOST_KEPT = 32 };

typedef struct {
  Handle primitive;
  int count;
  Argument arguments[4];
} Step;

typedef struct Plan {
  struct Plan* next;
  char* text; /* what it computes */
  size_t length;
  int place[3];       /* of data, filters and result among the two operands and the output */
  Handle memories[3]; /* of data, filters and result */
  int used;           /* memories in the scratch memory: */
  Handle inner[7];    /* data, filters and result in oneDNN's own arrangement, and what the steps compute in */
  size_t offset[7];   /* of those */
  size_t scratch;     /* bytes for them */
  int count;
  Step steps[4];
  int kept; /* what is to be destroyed, and how */
  Handle handles[MOST_KEPT];
  int (*destroy[MOST_KEPT])(Handle);
} Plan;

typedef struct {
  int64_t kind, groups, blocked, n;
  int64_t data[6], filters[6], result[6], stride[6], dilate[6], low[6], high[6], order[6];
} Convolution;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one runs at a time, on all cores */
static Plan* latest;                                     /* plans, the latest used first */
static void* scratch;                                    /* which every plan uses in turn */
static size_t room;
int64_t dualmx_onednn_plans, dualmx_onednn_most = 512; /* how many there are, and may be */

/* Numbers up to the next semicolon or the end; how many, 0 if there are none or too many. */
static int numbers(char** at, int64_t* out) {
  for (int i = 0; i < 6; i++) {
    char* end;
    out[i] = strtoll(*at, &end, 10);
    if (end == *at) return 0;
    *at = end + (*end != 0);
    if (*end != ',') return *end == ';' || !*end ? i + 1 : 0;
  }
  return 0;
}

static int parse(char* text, Convolution* c) {
  if (numbers(&text, &c->kind) != 1 || numbers(&text, &c->groups) != 1 || numbers(&text, &c->blocked) != 1) return 0;
  int n = numbers(&text, c->data);
  c->n = n;
  if (n < 3 || n > 5 || c->kind < 0 || c->kind >= KINDS || c->groups < 1) return 0;
  if (numbers(&text, c->filters) != n || numbers(&text, c->result) != n) return 0;
  if (numbers(&text, c->stride) != n - 2 || numbers(&text, c->dilate) != n - 2) return 0;
  if (numbers(&text, c->low) != n - 2 || numbers(&text, c->high) != n - 2 || numbers(&text, c->order) != n) return 0;
  for (int i = 0; i < n; i++)
    if (c->order[i] < 0 || c->order[i] >= n) return 0;
  return !*text;
}

static Handle keep(Plan* plan, Handle handle, int (*destroy)(Handle)) {
  plan->handles[plan->kept] = handle;
  plan->destroy[plan->kept++] = destroy;
  return handle;
}

static void discard(Plan* plan) {
  while (plan->kept--) plan->destroy[plan->kept](plan->handles[plan->kept]);
  free(plan->text);
  free(plan);
}

/* Call a function of oneDNN; if it reports a failure, say so and return from the function around. */
#define TRY(name, ...)                                                                                    \
  do {                                                                                                    \
    int status = dnnl.name(__VA_ARGS__);                                                                  \
    if (status) return snprintf(message, MESSAGE, "oneDNN: dnnl_" #name " failed with status %d", status); \
  } while (0)

/* Memory of a description inside the scratch memory. */
static int in_scratch(Plan* plan, Handle description, Handle* memory, char* message) {
  TRY(memory_create, memory, description, engine, NULL);
  plan->inner[plan->used] = keep(plan, *memory, dnnl.memory_destroy);
  plan->offset[plan->used++] = plan->scratch;
  plan->scratch += (dnnl.memory_desc_get_size(description) + LINE - 1) / LINE * LINE;
  return 0;
}

/* A step more, with the memory that it computes in. */
static int add(Plan* plan, Handle description, const Argument* arguments, int count, char* message) {
  Step* step = &plan->steps[plan->count++];
  Handle needs = dnnl.primitive_desc_query_md(description, SCRATCHPAD_MD, 0);
  TRY(primitive_create, &step->primitive, description);
  keep(plan, step->primitive, dnnl.primitive_destroy);
  memcpy(step->arguments, arguments, count * sizeof *arguments);
  step->count = count;
  if (!dnnl.memory_desc_get_size(needs)) return 0;
  step->arguments[count].role = SCRATCHPAD;
  step->count++;
  return in_scratch(plan, needs, &step->arguments[count].memory, message);
}

/* The step that writes one memory into another one. */
static int copy(Plan* plan, Handle from, Handle source, Handle to, Handle target, char* message) {
  Handle description;
  TRY(reorder_primitive_desc_create, &description, from, engine, to, engine, caller);
  keep(plan, description, dnnl.primitive_desc_destroy);
  return add(plan, description, (Argument[]){{SRC, source}, {DST, target}}, 2, message);
}

/* Strides of an array whose axes lie in this order, outermost first. */
static void strides(const int64_t* sizes, const int64_t* order, int n, int64_t* out) {
  int64_t step = 1;
  for (int i = n; i--; step *= sizes[order[i]]) out[order[i]] = step;
}

/* A primitive, its memories, and their re-arrangements where it wants another one. Not 0 with a message on failure. */
static int prepare(Plan* plan, const Convolution* c, char* message) {
  static const int places[KINDS][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
  static const int roles[KINDS][3] = {{SRC, WEIGHTS, DST}, {DIFF_SRC, WEIGHTS, DIFF_DST}, {SRC, DIFF_WEIGHTS, DIFF_DST}};
  static const int asked[KINDS][3] = {
      {SRC_MD, WEIGHTS_MD, DST_MD}, {DIFF_SRC_MD, WEIGHTS_MD, DIFF_DST_MD}, {SRC_MD, DIFF_WEIGHTS_MD, DIFF_DST_MD}};
  int n = c->n, grouped = c->groups > 1;
  int64_t last[6] = {0}, dilate[6];
  for (int i = 1; i < n; i++) last[i] = i + 1 < n ? i + 1 : 1;
  for (int i = 0; i < n - 2; i++) dilate[i] = c->dilate[i] - 1;

  const int64_t* sizes[3] = {c->data, c->filters, c->result};
  int64_t laid[3][7], split[7];
  strides(c->data, last, n, laid[0]);
  strides(c->filters, c->order, n, laid[1]);
  strides(c->result, last, n, laid[2]);
  if (grouped) {
    memmove(laid[1] + 1, laid[1], n * sizeof **laid);
    memcpy(split + 1, c->filters, n * sizeof *split);
    split[0] = c->groups;
    split[1] /= c->groups;
    laid[1][0] *= split[1];
    sizes[1] = split;
  }
  Handle plain[3], open[3];
  for (int i = 0; i < 3; i++) {
    int axes = n + (i == 1 && grouped);
    TRY(memory_desc_create_with_strides, &plain[i], axes, sizes[i], FLOAT32, laid[i]);
    keep(plan, plain[i], dnnl.memory_desc_destroy);
    TRY(memory_desc_create_with_tag, &open[i], axes, sizes[i], FLOAT32, ANY);
    keep(plan, open[i], dnnl.memory_desc_destroy);
    TRY(memory_create, &plan->memories[i], plain[i], engine, NULL);
    keep(plan, plan->memories[i], dnnl.memory_destroy);
  }
  Handle data = c->blocked ? open[0] : plain[0], filters = open[1], result = c->blocked ? open[2] : plain[2];

  Handle forward, chosen;
  TRY(convolution_forward_primitive_desc_create, &forward, engine, TRAINING, DIRECT, data, filters, NULL, result,
      c->stride, dilate, c->low, c->high, caller);
  keep(plan, forward, dnnl.primitive_desc_destroy);
  if (c->kind == DATA)
    TRY(convolution_backward_data_primitive_desc_create, &chosen, engine, DIRECT, data, filters, result, c->stride,
        dilate, c->low, c->high, forward, caller);
  else if (c->kind == FILTERS)
    TRY(convolution_backward_weights_primitive_desc_create, &chosen, engine, DIRECT, data, filters, NULL, result,
        c->stride, dilate, c->low, c->high, forward, caller);
  else
    chosen = forward;
  if (chosen != forward) keep(plan, chosen, dnnl.primitive_desc_destroy);

  Handle own[3];
  Argument arguments[3];
  int output = c->kind == FORWARD ? 2 : c->kind == DATA ? 0 : 1;
  for (int i = 0; i < 3; i++) {
    plan->place[i] = places[c->kind][i];
    own[i] = dnnl.primitive_desc_query_md(chosen, asked[c->kind][i], 0);
    arguments[i] = (Argument){roles[c->kind][i], plan->memories[i]};
    if (dnnl.memory_desc_equal(own[i], plain[i])) continue;
    if (in_scratch(plan, own[i], &arguments[i].memory, message)) return 1;
    if (i != output && copy(plan, plain[i], plan->memories[i], own[i], arguments[i].memory, message)) return 1;
  }
  if (add(plan, chosen, arguments, 3, message)) return 1;
  Handle computed = arguments[output].memory, wanted = plan->memories[output];
  return computed != wanted && copy(plan, own[output], computed, plain[output], wanted, message);
}

static Plan* make(const char* text, size_t length, char* message) {
  Convolution c;
  Plan* plan = calloc(1, sizeof *plan);
  if (plan) plan->text = malloc(length + 1);
  if (!plan || !plan->text) return snprintf(message, MESSAGE, "oneDNN: out of memory"), free(plan), NULL;
  memcpy(plan->text, text, length);
  plan->text[plan->length = length] = 0;
  if (!parse(plan->text, &c))
    snprintf(message, MESSAGE, "oneDNN: no convolution: %.200s", plan->text);
  else if (!prepare(plan, &c, message))
    return plan;
  return discard(plan), NULL;
}

/* The plan for a text, moved to the front; NULL with a message if there can be none. */
static Plan* find(const char* text, size_t length, char* message) {
  Plan** at = &latest;
  Plan** last = at;
  for (; *at; last = at, at = &(*at)->next) {
    Plan* plan = *at;
    if (plan->length != length || memcmp(plan->text, text, length)) continue;
    *at = plan->next;
    plan->next = latest;
    return latest = plan;
  }
  if (dualmx_onednn_plans >= dualmx_onednn_most && *last) {
    discard(*last);
    *last = NULL;
    dualmx_onednn_plans--;
  }
  Plan* plan = make(text, length, message);
  if (!plan) return NULL;
  dualmx_onednn_plans++;
  plan->next = latest;
  return latest = plan;
}

static int run(Plan* plan, void* const* buffers, char* message) {
  if (plan->scratch > room) {
    free(scratch);
    room = 0;
    if (posix_memalign(&scratch, LINE, plan->scratch))
      return scratch = NULL, snprintf(message, MESSAGE, "oneDNN: no memory for %zu bytes", plan->scratch);
    room = plan->scratch;
  }
  for (int i = 0; i < 3; i++) TRY(memory_set_data_handle, plan->memories[i], buffers[plan->place[i]]);
  for (int i = 0; i < plan->used; i++)
    TRY(memory_set_data_handle, plan->inner[i], (char*)scratch + plan->offset[i]);
  for (int i = 0; i < plan->count; i++)
    TRY(primitive_execute, plan->steps[i].primitive, stream, plan->steps[i].count, plan->steps[i].arguments);
  TRY(stream_wait, stream);
  return 0;
}

/* Compute what a text describes on the two operands and the output at these addresses; with a message on failure. */
void dualmx_onednn_compute(const char* text, size_t length, void* const* buffers, char message[MESSAGE]) {
  *message = 0;
  pthread_mutex_lock(&lock);
  Plan* plan = find(text, length, message);
  if (plan) run(plan, buffers, message);
  pthread_mutex_unlock(&lock);
}

/* Names of the functions that `dualmx_onednn_start` takes, NULL after the last. */
const char* dualmx_onednn_name(int i) {
#define NAME(name, arguments) "dnnl_" #name,
  static const char* const names[] = {FUNCTIONS(NAME) "dnnl_memory_desc_get_size", "dnnl_primitive_desc_query_md",
                                      "GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads",
                                      "omp_set_num_threads", NULL};
  return names[i];
}

/* OpenMP's threads of the thread that forks are not there in the fork, where it would wait for them. */
static void be_alone(void) { dnnl.set_threads(1); }

/* Take the addresses of oneDNN's functions. To be called once, before all else; not 0 on failure. */
int dualmx_onednn_start(void* const* functions) {
  memcpy(&dnnl, functions, sizeof dnnl);
  int status = pthread_atfork(NULL, NULL, be_alone) || dnnl.engine_create(&engine, CPU, 0) || dnnl.stream_create(&stream, engine, IN_ORDER);
  return status || dnnl.primitive_attr_create(&caller) || dnnl.primitive_attr_set_scratchpad_mode(caller, CALLER);
}

/* Batch normalization, maxima of windows, masks and the error function, for programs that run without XLA. */

#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef FOR_EACH_PROCESSOR
#define FOR_EACH_PROCESSOR
#endif

/* Rows that are added in float before their sums are in double; channels at a time; rows that one thread takes. */
enum { BLOCK = 16, TILE = 256, STRIP = 1024 };
enum { WORTH_THREADS = 400000, PIECE = 65536 }; /* elements: of all arrays that several threads share, and of a part */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }

/* Items of work of a loop, which any thread may take. */
typedef struct {
  void (*compute)(const void* loop, int64_t item);
  const void* loop;
  int64_t items;
} Team;

static void take_share(void* data) {
  const Team* team = data;
  int64_t size = dnnl.team_size(), number = dnnl.thread_number();
  for (int64_t i = team->items * number / size; i < team->items * (number + 1) / size; i++)
    team->compute(team->loop, i);
}

/* Compute all items, by several threads if that many elements are worth it. */
static void share(void (*compute)(const void*, int64_t), const void* loop, int64_t items, int64_t elements) {
  Team team = {compute, loop, items};
  if (elements >= WORTH_THREADS && items > 1)
    dnnl.run_team(take_share, &team, 0, 0);
  else
    for (int64_t i = 0; i < items; i++) compute(loop, i);
}

/* Of each of n channels the sums of x - shift and of its square. */
FOR_EACH_PROCESSOR static void moments(const float* restrict x, const float* restrict shift, int64_t rows,
                                       int64_t channels, int64_t n, double* restrict sums, double* restrict squares) {
  memset(sums, 0, n * sizeof *sums);
  memset(squares, 0, n * sizeof *squares);
  for (int64_t begin = 0; begin < rows; begin += BLOCK) {
    int64_t end = begin + BLOCK < rows ? begin + BLOCK : rows;
    float sum[TILE] = {0}, square[TILE] = {0};
    for (int64_t i = begin; i < end; i++)
      for (int64_t j = 0; j < n; j++) {
        float d = x[i * channels + j] - shift[j];
        sum[j] += d;
        square[j] += d * d;
      }
    for (int64_t j = 0; j < n; j++) sums[j] += sum[j], squares[j] += square[j];
  }
}

/* Of each of n channels the sums of dy and of dy (x - mean). */
FOR_EACH_PROCESSOR static void products(const float* restrict x, const float* restrict dy, const float* restrict mean,
                                        int64_t rows, int64_t channels, int64_t n, double* restrict sums,
                                        double* restrict weighted) {
  memset(sums, 0, n * sizeof *sums);
  memset(weighted, 0, n * sizeof *weighted);
  for (int64_t begin = 0; begin < rows; begin += BLOCK) {
    int64_t end = begin + BLOCK < rows ? begin + BLOCK : rows;
    float sum[TILE] = {0}, product[TILE] = {0};
    for (int64_t i = begin; i < end; i++)
      for (int64_t j = 0; j < n; j++) {
        float g = dy[i * channels + j];
        sum[j] += g;
        product[j] += g * (x[i * channels + j] - mean[j]);
      }
    for (int64_t j = 0; j < n; j++) sums[j] += sum[j], weighted[j] += product[j];
  }
}

/* y = (x - mean) scale + beta */
FOR_EACH_PROCESSOR static void scale_rows(const float* restrict x, const float* restrict mean,
                                          const float* restrict scale, const float* restrict beta, int64_t rows,
                                          int64_t channels, int64_t n, float* restrict y) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = i * channels + j;
      y[at] = (x[at] - mean[j]) * scale[j] + beta[j];
    }
}

/* dx = dy a - (x - mean) b - c */
FOR_EACH_PROCESSOR static void combine_rows(const float* restrict x, const float* restrict dy,
                                            const float* restrict mean, const float* restrict a,
                                            const float* restrict b, const float* restrict c, int64_t rows,
                                            int64_t channels, int64_t n, float* restrict dx) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = i * channels + j;
      dx[at] = dy[at] * a[j] - (x[at] - mean[j]) * b[j] - c[j];
    }
}

/* A batch normalization or its gradient; an item is a strip of rows of a tile of channels. */
typedef struct {
  int64_t rows, channels;
  const float *x, *dy, *mean, *beta;
  float *out, *a, *b, *c; /* the result, and what it is made with, for each channel */
  double *first, *second; /* two sums over each strip, for each channel */
} Normalization;

typedef struct {
  int64_t channel, channels, row, rows, at, sums;
} Strip;

static Strip strip_of(const Normalization* n, int64_t item) {
  int64_t tiles = parts(n->channels, TILE);
  Strip s = {.channel = item % tiles * TILE, .row = item / tiles * STRIP};
  s.channels = least(TILE, n->channels - s.channel);
  s.rows = least(STRIP, n->rows - s.row);
  s.at = s.row * n->channels + s.channel;
  s.sums = item / tiles * n->channels + s.channel;
  return s;
}

static void add_moments(const void* loop, int64_t item) { /* shifted by a row, so that nothing cancels */
  const Normalization* n = loop;
  Strip s = strip_of(n, item);
  moments(n->x + s.at, n->x + s.channel, s.rows, n->channels, s.channels, n->first + s.sums, n->second + s.sums);
}

static void add_products(const void* loop, int64_t item) {
  const Normalization* n = loop;
  Strip s = strip_of(n, item);
  products(n->x + s.at, n->dy + s.at, n->mean + s.channel, s.rows, n->channels, s.channels, n->first + s.sums,
           n->second + s.sums);
}

static void write_results(const void* loop, int64_t item) {
  const Normalization* n = loop;
  Strip s = strip_of(n, item);
  scale_rows(n->x + s.at, n->mean + s.channel, n->a + s.channel, n->beta + s.channel, s.rows, n->channels, s.channels,
             n->out + s.at);
}

static void write_gradients(const void* loop, int64_t item) {
  const Normalization* n = loop;
  Strip s = strip_of(n, item);
  combine_rows(n->x + s.at, n->dy + s.at, n->mean + s.channel, n->a + s.channel, n->b + s.channel, n->c + s.channel,
               s.rows, n->channels, s.channels, n->out + s.at);
}

/* Run one step of a normalization for all strips. */
static void each_strip(const Normalization* n, void (*step)(const void*, int64_t)) {
  share(step, n, parts(n->rows, STRIP) * parts(n->channels, TILE), n->rows * n->channels);
}

/* Memory for what is kept for each channel and strip; 0 on failure. Strips do not depend on the number of threads. */
static int reserve(Normalization* n) {
  int64_t strips = parts(n->rows, STRIP), size = n->channels * (2 * strips * sizeof(double) + 3 * sizeof(float));
  n->first = malloc(size ? size : 1);
  n->second = n->first + strips * n->channels;
  n->a = (float*)(n->second + strips * n->channels);
  n->b = n->a + n->channels;
  n->c = n->b + n->channels;
  return n->first != NULL;
}

static double total(const Normalization* n, const double* sums, int64_t channel) {
  double sum = 0;
  for (int64_t i = 0; i < parts(n->rows, STRIP); i++) sum += sums[i * n->channels + channel];
  return sum;
}

/* y, mean, biased variance and 1 / sqrt(variance + eps) of x, gamma and beta; not 0 without memory. */
int dualmx_normalize_batch(int64_t rows, int64_t channels, float eps, const float* x, const float* gamma,
                           const float* beta, float* y, float* mean, float* variance, float* inverse) {
  Normalization n = {.rows = rows, .channels = channels, .x = x, .mean = mean, .beta = beta, .out = y};
  if (!reserve(&n)) return 1;
  each_strip(&n, add_moments);
  for (int64_t j = 0; j < channels; j++) {
    double s = total(&n, n.first, j) / rows, v = total(&n, n.second, j) / rows - s * s;
    mean[j] = (float)(x[j] + s);
    variance[j] = v < 0 ? 0 : (float)v; /* NaN stays */
    inverse[j] = 1 / sqrtf(variance[j] + eps);
    n.a[j] = gamma[j] * inverse[j];
  }
  each_strip(&n, write_results);
  return free(n.first), 0;
}

/* Gradients of x, gamma and beta from that of y; not 0 without memory. */
int dualmx_normalize_batch_vjp(int64_t rows, int64_t channels, const float* x, const float* gamma, const float* mean,
                               const float* inverse, const float* dy, float* dx, float* dgamma, float* dbeta) {
  Normalization n = {.rows = rows, .channels = channels, .x = x, .dy = dy, .mean = mean, .out = dx};
  if (!reserve(&n)) return 1;
  each_strip(&n, add_products);
  for (int64_t j = 0; j < channels; j++) {
    float r = inverse[j];
    dbeta[j] = (float)total(&n, n.first, j);
    dgamma[j] = (float)(total(&n, n.second, j) * r);
    n.a[j] = gamma[j] * r;
    n.b[j] = n.a[j] * r * dgamma[j] / rows;
    n.c[j] = n.a[j] * dbeta[j] / rows;
  }
  each_strip(&n, write_gradients);
  return free(n.first), 0;
}

/* Maxima of windows of images (N, H, W, C), and their gradients. `sizes` are N, H, W, C, two of the maxima (N, h, w, C),
 * two of the windows, two strides and two paddings in front. */
typedef struct {
  const int64_t* sizes;
  const float *x, *y, *dy;
  float* out;
} Windows;

FOR_EACH_PROCESSOR static void take_maxima(const float* restrict x, int64_t n, float* restrict y) {
  for (int64_t j = 0; j < n; j++) y[j] = x[j] > y[j] || x[j] != x[j] ? x[j] : y[j]; /* NaN is the largest of all */
}

/* The maxima of one row of windows. */
static void row_of_maxima(const void* loop, int64_t item) {
  const Windows* w = loop;
  const int64_t *s = w->sizes, height = s[1], width = s[2], channels = s[3], image = item / s[4], row = item % s[4];
  for (int64_t column = 0; column < s[5]; column++) {
    float* y = w->out + (item * s[5] + column) * channels;
    for (int64_t j = 0; j < channels; j++) y[j] = -INFINITY;
    for (int64_t i = 0; i < s[6]; i++)
      for (int64_t j = 0; j < s[7]; j++) {
        int64_t r = row * s[8] + i - s[10], c = column * s[9] + j - s[11];
        if (r >= 0 && r < height && c >= 0 && c < width)
          take_maxima(w->x + ((image * height + r) * width + c) * channels, channels, y);
        else /* what padding holds */
          for (int64_t k = 0; k < channels; k++) y[k] = y[k] < -FLT_MAX ? -FLT_MAX : y[k];
      }
  }
}

void dualmx_max_pool(const int64_t* sizes, const float* x, float* y) {
  Windows w = {.sizes = sizes, .x = x, .out = y};
  share(row_of_maxima, &w, sizes[0] * sizes[4], sizes[0] * sizes[1] * sizes[2] * sizes[3]);
}

/* The gradients of n channels of one pixel pass where it is the maximum of its window, and are used up there. */
FOR_EACH_PROCESSOR static void pass_to_maxima(const float* restrict x, const float* restrict y, int64_t n,
                                              float* restrict left, float* restrict dx) {
  for (int64_t j = 0; j < n; j++) {
    int is_maximum = x[j] == y[j];
    dx[j] += is_maximum ? left[j] : 0;
    left[j] = is_maximum ? 0 : left[j];
  }
}

/* The gradient of a tile of channels of one image, whose first maximum of each window receives it. */
static void gradient_of_maxima(const void* loop, int64_t item) {
  const Windows* w = loop;
  const int64_t *s = w->sizes, height = s[1], width = s[2], channels = s[3], tiles = parts(channels, TILE);
  const int64_t image = item / tiles, first = item % tiles * TILE, n = least(TILE, channels - first);
  float lowest[TILE], left[TILE], nowhere[TILE] = {0};
  for (int64_t j = 0; j < TILE; j++) lowest[j] = -FLT_MAX; /* in the padding */
  for (int64_t i = 0; i < height * width; i++)
    memset(w->out + (image * height * width + i) * channels + first, 0, n * sizeof *left);
  for (int64_t row = 0; row < s[4]; row++)
    for (int64_t column = 0; column < s[5]; column++) {
      int64_t at = ((image * s[4] + row) * s[5] + column) * channels + first;
      memcpy(left, w->dy + at, n * sizeof *left);
      for (int64_t i = 0; i < s[6]; i++)
        for (int64_t j = 0; j < s[7]; j++) {
          int64_t r = row * s[8] + i - s[10], c = column * s[9] + j - s[11];
          int64_t from = ((image * height + r) * width + c) * channels + first;
          if (r < 0 || r >= height || c < 0 || c >= width)
            pass_to_maxima(lowest, w->y + at, n, left, nowhere);
          else
            pass_to_maxima(w->x + from, w->y + at, n, left, w->out + from);
        }
    }
}

void dualmx_max_pool_vjp(const int64_t* sizes, const float* x, const float* y, const float* dy, float* dx) {
  Windows w = {sizes, x, y, dy, dx};
  share(gradient_of_maxima, &w, sizes[0] * parts(sizes[3], TILE), sizes[0] * sizes[1] * sizes[2] * sizes[3]);
}

/* Functions of elements. */
typedef struct {
  const void *x, *mask;
  void* out;
  int64_t n;
} Elements;

/* x where a mask of bytes 0 and 1 holds, 0 elsewhere; words of any type. */
FOR_EACH_PROCESSOR static void masked(const uint8_t* restrict mask, const uint32_t* restrict x, int64_t n,
                                      uint32_t* restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] & -(uint32_t)mask[i];
}

static void masked_piece(const void* loop, int64_t item) {
  const Elements* e = loop;
  int64_t at = item * PIECE;
  masked((const uint8_t*)e->mask + at, (const uint32_t*)e->x + at, least(PIECE, e->n - at), (uint32_t*)e->out + at);
}

void dualmx_keep_masked(const uint8_t* mask, const uint32_t* x, int64_t n, uint32_t* out) {
  share(masked_piece, &(Elements){x, mask, out, n}, parts(n, PIECE), n);
}

/* erf(x) = x p(x^2) / q(x^2), fitted by least squares with weights so that the largest relative error is least. */
FOR_EACH_PROCESSOR static void erf_piece(const float* restrict x, int64_t n, float* restrict out) {
  const float end = 3.92f; /* from where on it is 1 */
  for (int64_t i = 0; i < n; i++) {
    float v = x[i] < -end ? -end : x[i] > end ? end : x[i], t = v * v;
    float p = 0.00023037794744595885f, q = -1.1220892304208974e-07f;
    p = p * t + 0.003581079887226224f;
    p = p * t + 0.0514984093606472f;
    p = p * t + 0.18971815705299377f;
    p = p * t + 1.1283791065216064f;
    q = q * t + 2.3159243937698193e-05f;
    q = q * t + 0.001053796848282218f;
    q = q * t + 0.014426522888243198f;
    q = q * t + 0.11279930174350739f;
    q = q * t + 0.5014657974243164f;
    q = q * t + 1.0f;
    float y = v * p / q;
    out[i] = y < -1 ? -1 : y > 1 ? 1 : y; /* NaN stays */
  }
}

static void piece_of_erf(const void* loop, int64_t item) {
  const Elements* e = loop;
  int64_t at = item * PIECE;
  erf_piece((const float*)e->x + at, least(PIECE, e->n - at), (float*)e->out + at);
}

void dualmx_erf(const float* x, int64_t n, float* out) {
  share(piece_of_erf, &(Elements){x, NULL, out, n}, parts(n, PIECE), n);
}

/* The inverse of erf, x p(w) with w = -log(1 - x^2), or x p(sqrt(w)) far out; each fitted as erf is. */
FOR_EACH_PROCESSOR static void erf_inv_piece(const float* restrict x, int64_t n, float* restrict out) {
  for (int64_t i = 0; i < n; i++) {
    float v = x[i], y = (1 - v) * (1 + v);
    union { float value; int32_t bits; } m = {y};
    int32_t shifted = m.bits - 0x3f3504f3; /* mantissas from sqrt(1/2) on */
    m.bits = (shifted & 0x7fffff) + 0x3f3504f3;
    float f = m.value - 1, l = 0.08722349256277084f;
    l = l * f - 0.14366839826107025f;
    l = l * f + 0.14952267706394196f;
    l = l * f - 0.16562393307685852f;
    l = l * f + 0.19956833124160767f;
    l = l * f - 0.25002074241638184f;
    l = l * f + 0.3333418667316437f;
    l = l * f - 0.49999988079071045f;
    l = l * f + 1.0f;
    float w = -((shifted >> 23) * 0.6931471805599453f + l * f), t = w - 2.5f;
    float p = 2.8535035667687225e-08f;
    p = p * t + 3.4372737900412176e-07f;
    p = p * t - 3.5288624076201813e-06f;
    p = p * t - 4.396784788696095e-06f;
    p = p * t + 0.00021860220294911414f;
    p = p * t - 0.0012537074508145452f;
    p = p * t - 0.004177707713097334f;
    p = p * t + 0.24664072692394257f;
    p = p * t + 1.5014094114303589f;
    float u = sqrtf(w < 0 ? 0 : w) - 3, q = -0.00015035131946206093f;
    q = q * u + 7.594354974571615e-05f;
    q = q * u + 0.001278983661904931f;
    q = q * u - 0.0036498080007731915f;
    q = q * u + 0.005771808326244354f;
    q = q * u - 0.007628063205629587f;
    q = q * u + 0.009434040635824203f;
    q = q * u + 1.0016742944717407f;
    q = q * u + 2.832977056503296f;
    float inverse = v * (w < 5 ? p : q);
    out[i] = y > 0 ? inverse : v / (y == 0 ? 0.0f : NAN); /* infinite at the ends, NaN outside */
  }
}

static void piece_of_erf_inv(const void* loop, int64_t item) {
  const Elements* e = loop;
  int64_t at = item * PIECE;
  erf_inv_piece((const float*)e->x + at, least(PIECE, e->n - at), (float*)e->out + at);
}

void dualmx_erf_inv(const float* x, int64_t n, float* out) {
  share(piece_of_erf_inv, &(Elements){x, NULL, out, n}, parts(n, PIECE), n);
}

/* Random bits: both words of threefry2x32 for counters from 0 on, combined by exclusive or. */
typedef struct {
  const uint32_t* key;
  int64_t n;
  float low, high;
  void* out;
} Draw;

static inline uint32_t turn(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* The bits of n counters, whose higher words are equal. */
FOR_EACH_PROCESSOR static void draw_bits(const uint32_t* key, uint32_t high, uint32_t low, int64_t n,
                                         uint32_t* restrict out) {
  static const int by[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda};
  for (int64_t i = 0; i < n; i++) {
    uint32_t x = high + keys[0], y = low + (uint32_t)i + keys[1];
#pragma GCC unroll 5
    for (int round = 0; round < 5; round++) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) x += y, y = turn(y, by[round % 2][j]) ^ x;
      x += keys[(round + 1) % 3], y += keys[(round + 2) % 3] + round + 1;
    }
    out[i] = x ^ y;
  }
}

static void draw_words(const void* loop, int64_t item) {
  const Draw* d = loop;
  int64_t at = item * PIECE; /* 2^32 is a multiple of it */
  draw_bits(d->key, (uint32_t)(at >> 32), (uint32_t)at, least(PIECE, d->n - at), (uint32_t*)d->out + at);
}

FOR_EACH_PROCESSOR static void lower_halves(const uint32_t* restrict bits, int64_t n, uint16_t* restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = (uint16_t)bits[i];
}

static void draw_halves(const void* loop, int64_t item) {
  enum { SOME = 4096 };
  const Draw* d = loop;
  uint32_t bits[SOME];
  for (int64_t at = item * PIECE, end = least(at + PIECE, d->n); at < end; at += SOME) {
    int64_t n = least(SOME, end - at);
    draw_bits(d->key, (uint32_t)(at >> 32), (uint32_t)at, n, bits);
    lower_halves(bits, n, (uint16_t*)d->out + at);
  }
}

/* 23 bits as the mantissa of a number from 1 to 2. */
FOR_EACH_PROCESSOR static void as_uniform(uint32_t* restrict bits, int64_t n, float low, float high) {
  float span = high - low;
  for (int64_t i = 0; i < n; i++) {
    union { uint32_t bits; float value; } one = {bits[i] >> 9 | 0x3f800000};
    one.value = (one.value - 1) * span + low;
    if (one.value < low) one.value = low;
    bits[i] = one.bits;
  }
}

static void draw_uniform(const void* loop, int64_t item) {
  const Draw* d = loop;
  draw_words(d, item);
  as_uniform((uint32_t*)d->out + item * PIECE, least(PIECE, d->n - item * PIECE), d->low, d->high);
}

/* Integers of 4 bytes, or of 2. */
void dualmx_random_bits(const uint32_t* key, int64_t n, int bytes, void* out) {
  share(bytes == 2 ? draw_halves : draw_words, &(Draw){key, n, 0, 0, out}, parts(n, PIECE), n);
}

void dualmx_random_uniform(const uint32_t* key, int64_t n, float low, float high, float* out) {
  share(draw_uniform, &(Draw){key, n, low, high, out}, parts(n, PIECE), n);
}

/* What XLA calls. */

static Error* failure(const Frame* frame, const char* message) {
  char text[MESSAGE + 64];
  snprintf(text, sizeof text, "%s; MXNET_MKLDNN_ENABLED=0 leaves all work to XLA", message);
  Failure failure = {sizeof failure, NULL, text, ERROR_INTERNAL};
  return frame->api->fail(&failure);
}

static int asks_for_version(const Frame* frame) {
  if (!frame->extension || frame->extension->type != EXTENSION_METADATA) return 0;
  frame->extension->metadata->version.major = FFI_MAJOR;
  frame->extension->metadata->version.minor = FFI_MINOR;
  return 1;
}

Error* dualmx_onednn_convolution(Frame* frame) {
  if (asks_for_version(frame)) return NULL;
  char message[MESSAGE];
  void* buffers[3] = {frame->args.items[0]->data, frame->args.items[1]->data, frame->rets.items[0]->data};
  Text* text = frame->attrs.items[0];
  dualmx_onednn_compute(text->data, text->length, buffers, message);
  return *message ? failure(frame, message) : NULL;
}

/* aT b for (k, m) and (k, n). */
Error* dualmx_onednn_product(Frame* frame) {
  if (asks_for_version(frame)) return NULL;
  Text* text = frame->attrs.items[0];
  char sizes[64], *at = sizes;
  int64_t mnk[6], m, n, k;
  snprintf(sizes, sizeof sizes, "%.*s", (int)text->length, text->data);
  if (numbers(&at, mnk) != 3) return failure(frame, "oneDNN: a product without sizes");
  m = mnk[0], n = mnk[1], k = mnk[2];
  float *a = frame->args.items[0]->data, *b = frame->args.items[1]->data, *out = frame->rets.items[0]->data;
  pthread_mutex_lock(&lock);
  int status = dnnl.sgemm('T', 'N', m, n, k, 1, a, m, b, n, 0, out, n);
  pthread_mutex_unlock(&lock);
  return status ? failure(frame, "oneDNN: a product failed") : NULL;
}

/* The operand, which is the result: XLA has computed it to hand it over. */
Error* dualmx_keep(Frame* frame) {
  asks_for_version(frame);
  return NULL;
}
