/* What XLA calls for a convolution or product that oneDNN computes, without Python's lock.
 *
 * Python prepares the plans (plan.py) and hands over the functions of oneDNN that run them, so that nothing of oneDNN is
 * needed to compile this file. Source: XLA's foreign function interface, xla/ffi/api/c_api.h.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

typedef struct {
  void* primitive;
  int count;
  void* arguments;
} Step;

/* A prepared convolution; plan.py declares the same structure. */
typedef struct Plan {
  struct Plan* next;
  const char* text; /* what it computes */
  size_t length;
  int64_t place[3];  /* of data, filters and result among the two operands and the output */
  void* memories[3]; /* of data, filters and result */
  int64_t used;      /* memories in the scratch memory: */
  void* inner[7];    /* data, filters and result in oneDNN's own arrangement, and what the steps compute in */
  size_t offset[7];  /* of those */
  size_t scratch;    /* bytes for them */
  int64_t count;
  Step steps[4];
} Plan;

typedef struct {
  int (*set_data)(void* memory, void* data);
  int (*execute)(void* primitive, void* stream, int count, void* arguments);
  int (*wait)(void* stream);
  int (*product)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float, float*,
                 int64_t);
  void* stream;
  int64_t most; /* plans kept */
  /* A plan for a text, made by Python, which may destroy another one for it; NULL with a message where it cannot. */
  Plan* (*make)(const char* text, size_t length, Plan* instead, char* message, size_t room);
} Functions;

enum { MESSAGE = 512 };

static Functions call;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one runs at a time, on all cores */
static Plan* latest;                                     /* plans, the latest used first */
static int64_t known;
static void* scratch;
static size_t room;

void dualmx_onednn_start(const Functions* functions) { call = *functions; }

static XLA_FFI_Error* failure(const XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, message, XLA_FFI_Error_Code_INTERNAL};
  return frame->api->XLA_FFI_Error_Create(&args);
}

static int asks_for_version(const XLA_FFI_CallFrame* frame) {
  XLA_FFI_Extension_Base* extension = frame->extension_start;
  if (!extension || extension->type != XLA_FFI_Extension_Metadata) return 0;
  XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)extension)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return 1;
}

static void operands(const XLA_FFI_CallFrame* frame, void* out[3]) {
  for (int i = 0; i < 2; i++) out[i] = ((XLA_FFI_Buffer*)frame->args.args[i])->data;
  out[2] = ((XLA_FFI_Buffer*)frame->rets.rets[0])->data;
}

/* The plan for a text, moved to the front. */
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
  Plan* instead = NULL;
  if (known == call.most) {
    instead = *last;
    *last = NULL;
    known--;
  }
  Plan* plan = call.make(text, length, instead, message, MESSAGE);
  if (!plan) return NULL;
  known++;
  plan->next = latest;
  return latest = plan;
}

static int run(Plan* plan, void* buffers[3]) {
  int status = 0;
  for (int i = 0; i < 3; i++) status |= call.set_data(plan->memories[i], buffers[plan->place[i]]);
  if (plan->scratch > room) {
    free(scratch);
    room = 0;
    if (posix_memalign(&scratch, 64, plan->scratch)) return scratch = NULL, 1;
    room = plan->scratch;
  }
  for (int i = 0; i < plan->used; i++) status |= call.set_data(plan->inner[i], (char*)scratch + plan->offset[i]);
  for (int i = 0; i < plan->count && !status; i++)
    status |= call.execute(plan->steps[i].primitive, call.stream, plan->steps[i].count, plan->steps[i].arguments);
  return status | call.wait(call.stream);
}

XLA_FFI_Error* dualmx_onednn_convolution(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(frame)) return NULL;
  XLA_FFI_ByteSpan* text = frame->attrs.attrs[0];
  char message[MESSAGE] = "";
  void* buffers[3];
  operands(frame, buffers);
  pthread_mutex_lock(&lock);
  Plan* plan = find(text->ptr, text->len, message);
  int status = plan ? run(plan, buffers) : 0;
  pthread_mutex_unlock(&lock);
  if (status) snprintf(message, sizeof message, "oneDNN: a convolution failed with status %d", status);
  return *message ? failure(frame, message) : NULL;
}

/* aT b for (k, m) and (k, n). */
XLA_FFI_Error* dualmx_onednn_product(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(frame)) return NULL;
  XLA_FFI_ByteSpan* text = frame->attrs.attrs[0];
  char sizes[64];
  long long m, n, k;
  snprintf(sizes, sizeof sizes, "%.*s", (int)text->len, text->ptr);
  if (sscanf(sizes, "%lld,%lld,%lld", &m, &n, &k) != 3) return failure(frame, "oneDNN: a product without sizes");
  void* buffers[3];
  operands(frame, buffers);
  pthread_mutex_lock(&lock);
  int status = call.product('T', 'N', m, n, k, 1, buffers[0], m, buffers[1], n, 0, buffers[2], n);
  pthread_mutex_unlock(&lock);
  return status ? failure(frame, "oneDNN: a product failed") : NULL;
}

/* The operand, which is the result: XLA has computed it to hand it over. */
XLA_FFI_Error* dualmx_keep(XLA_FFI_CallFrame* frame) {
  asks_for_version(frame);
  return NULL;
}
