/* One line per event on standard error, each kind at most once a second. */
#ifndef VGPU_LOG_H
#define VGPU_LOG_H

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Kinds are counted apart, so that a storm of one never hides another. */
enum log_kind { LOG_REFUSAL, LOG_REGION, LOG_SETTINGS, LOG_DRIVER, LOG_CARD, LOG_KINDS };

void log_line(enum log_level level, enum log_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
