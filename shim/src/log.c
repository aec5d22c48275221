#include "log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int64_t last_second[LOG_KINDS];

/* LIBCUDA_LOG_LEVEL as users of upstream's library know it: 0 errors, 1 and 2 warnings (default), 3 all, 4 debugging. */
static enum log_level threshold(void) {
  const char *text = getenv("LIBCUDA_LOG_LEVEL");
  if (!text || text[0] < '0' || text[0] > '9') return LOG_WARNING;
  int level = atoi(text);
  return level == 0 ? LOG_ERROR : level <= 2 ? LOG_WARNING : level == 3 ? LOG_INFO : LOG_DEBUG;
}

void log_line(enum log_level level, enum log_kind kind, const char *format, ...) {
  if (level > threshold()) return;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t second = (int64_t)now.tv_sec + 1;
  int64_t last = __atomic_load_n(&last_second[kind], __ATOMIC_RELAXED);
  if (level < LOG_DEBUG) {
    if (last == second) return;
    if (!__atomic_compare_exchange_n(&last_second[kind], &last, second, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  }
  char line[512];
  int start = snprintf(line, sizeof line, "vgpu[%d]: ", (int)getpid());
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + start, sizeof line - (size_t)start - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  size_t end = (size_t)start + (size_t)length;
  if (end > sizeof line - 2) end = sizeof line - 2;
  line[end++] = '\n';
  ssize_t written = write(STDERR_FILENO, line, end);
  (void)written;
}
