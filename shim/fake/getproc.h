/* What cuGetProcAddress answers: one row per (name, lowest version, kind of default stream). */
#ifndef FAKE_GETPROC_H
#define FAKE_GETPROC_H

enum mode { ANY_STREAM, LEGACY, PER_THREAD };

struct getproc {
	const char *name; /* NULL ends the table */
	int minimum;
	enum mode mode;
	void *function;
	int since; /* the CUDA version whose driver first exported it */
};
extern const struct getproc getproc_rows[];

#endif
