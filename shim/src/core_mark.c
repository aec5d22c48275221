#include "core_mark.h"

#include "core_time.h"
#include "driver.h"
#include "graph.h"
#include "log.h"

#include <pthread.h>
#include <stdlib.h>

bool mark_possible(const struct stream *stream) { return !stream->thread || stream->thread == (uint64_t)(uintptr_t)pthread_self(); }

/* The default streams have one name in all contexts and threads; an event in a capturing stream would become part of the
   graph, and a question about it would break the capture. */
static bool reachable(const struct stream *stream) {
  CUcontext context;
  if (!mark_possible(stream)) return false;
  if (NEXT(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || context != stream->context) return false;
  int status = 0;
  return !graph_captures() || (NEXT(cuStreamIsCapturing)(stream->handle, &status) == CUDA_SUCCESS && !status);
}

struct mark *mark_record(struct limiter *limiter, struct stream *stream) {
  struct timeline *timeline = stream->timeline;
  if (!timeline || !reachable(stream)) return NULL;
  struct mark *mark = timeline->free;
  CUresult result = CUDA_SUCCESS;
  if (mark) {
    timeline->free = mark->next;
  } else {
    mark = calloc(1, sizeof *mark);
    if (!mark) return NULL;
    result = NEXT(cuEventCreate)(&mark->event, 0);
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
      log_line(LOG_ERROR, LOG_CARD, "card %d: this driver has no events; the core limit is not in force", limiter->card);
      limiter->deaf = true;
    }
    if (result != CUDA_SUCCESS) {
      free(mark);
      return NULL;
    }
    mark->timeline = timeline;
  }
  mark->users = 1;
  if (NEXT(cuEventRecord)(mark->event, stream->handle) == CUDA_SUCCESS) return mark;
  mark_release(mark);
  return NULL;
}

void mark_release(struct mark *mark) {
  if (!mark || --mark->users) return;
  mark->next = mark->timeline->free;
  mark->timeline->free = mark;
}

enum mark_state mark_state(const struct mark *mark) {
  CUresult result = NEXT(cuEventQuery)(mark->event);
  return result == CUDA_SUCCESS ? MARK_DONE : result == CUDA_ERROR_NOT_READY ? MARK_PENDING : MARK_BROKEN;
}

int64_t mark_between(const struct mark *from, const struct mark *to) {
  float milliseconds = 0;
  if (NEXT(cuEventElapsedTime)(&milliseconds, from->event, to->event) != CUDA_SUCCESS) return -1;
  return (int64_t)((double)milliseconds * MILLISECOND);
}

bool mark_stream_idle(const struct stream *stream) { return reachable(stream) && NEXT(cuStreamQuery)(stream->handle) == CUDA_SUCCESS; }

bool mark_stream_busy(const struct stream *stream) { return reachable(stream) && NEXT(cuStreamQuery)(stream->handle) == CUDA_ERROR_NOT_READY; }

int mark_allow(void) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (!graph_captures() || !HAVE(cuThreadExchangeStreamCaptureMode)) return -1;
  return NEXT(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS ? mode : -1;
}

void mark_restore(int mode) {
  if (mode >= 0) NEXT(cuThreadExchangeStreamCaptureMode)(&mode);
}
