/* Turns between the containers of one card.

   Where several are busy, one at a time launches: a change of context costs the card 0.15 ms, and the driver's own slices of
   2 ms waste a twelfth of it. A turn is as long as the container's part of a period of some ten milliseconds; who had least
   for its part is next. A container that uses little of its part ("light") need not wait for the end of a turn. Nobody waits
   for one that does not play by the rules: see takes_over.

   The container is one participant: its processes share struct core_turn in <region>.core. */
#ifndef VGPU_CORE_TURN_H
#define VGPU_CORE_TURN_H

#include "core_card_file.h"

#include <stdbool.h>
#include <stdint.h>

struct limiter;

enum { TURN_SAMPLES = 11 };

/* What was seen of another tenant. */
struct turn_seen {
  uint64_t owner;
  int64_t kept;    /* how long it has had the turn while a launch waited here */
  uint64_t account; /* its account when that began: one that keeps the turn rightly has less than this container, and more and more */
  int64_t unused;  /* how long it left the turn alone that it could have had */
  int64_t passed;  /* until when it is not left much time for it any more */
  int64_t ignored; /* until when it is taken not to be there: it kept the turn too long */
};

struct turn {
  struct card_handle handle;
  struct card_file file; /* as read last */
  struct card_tenant shown;
  _Atomic int64_t quiet;       /* until then nobody else is there */
  int64_t next_look;   /* while the container has the turn */
  int64_t written;     /* when the own record was */
  int64_t looked, active; /* active: when the container last had or wanted the turn */
  int64_t duration;    /* of the latest launch */
  int late;            /* turns in a row after which the card was not done when expected */
  int64_t careful;     /* until then predictions are not relied on */
  int64_t expected;    /* when the card should be done with what the last turn launched; 0 once that was looked at */
  int64_t predecessor_finish; /* of the tenant that had the turn before */
  int64_t raised;      /* finish as this process last put it */
  int64_t unknown;     /* until then a launch of unknown length is taken to be under way */
  int64_t skipped;     /* when it last launched without the turn, being light */
  int64_t lingers;     /* since when such a launch is under way: the holder may let it through */
  int64_t longest;     /* launch of another tenant that was waited for */
  int64_t wanted;      /* since when a launch of this process waits for the turn; 0 none does */
  int64_t watched;     /* since when the same word has been seen */
  uint64_t watched_word;
  int64_t polled;      /* when a waiting launch last looked */
  struct turn_seen seen[CARD_TENANTS];
  int64_t light_about; /* until when a light tenant is taken to be there */
  int64_t unmanaged;   /* until when turns are not waited for */
  int64_t synchronized, gap; /* when the program last waited for the card; its mean time from there to the next launch */
  _Atomic int64_t quantum, part;     /* length of a turn, ns; the container's part of the card, parts per million */
  _Atomic int64_t others;    /* until when other busy tenants are taken to be there */
  _Atomic int64_t together;  /* the same, if the card file tells nothing any more */
  _Atomic bool open;         /* there is a card file */
  bool yield, light;
  int samples;
  int64_t sample_time[TURN_SAMPLES];
  uint64_t sample_busy[TURN_SAMPLES];
};

/* Returns when the container has the turn and the launch fits into it, *now moved on, or when to look again. `duration`: of
   the launch, ns, 0 unknown. 0: the launch may go. */
int64_t turn_hold(struct limiter *limiter, int64_t *now, int64_t duration);

/* The container's own limit holds the launch back until `wake`: its turn ends as soon as the card is done. Returns when to
   look again. */
int64_t turn_blocked(struct limiter *limiter, int64_t now, int64_t wake);

/* The program waited for the card. Needs the limiter's lock. */
void turn_synchronized(struct limiter *limiter, int64_t now);

/* Whether other busy tenants are on the card. */
bool turn_shared(const struct limiter *limiter, int64_t now);

/* Whether there were some lately: they may be there still if the card file is of no use any more. */
bool turn_together(const struct limiter *limiter, int64_t now);

/* Whether other tenants may have the card now. */
bool turn_missed(const struct limiter *limiter, int64_t now);

/* Whether the container may go beyond its limit, because others would show themselves if they wanted the time. */
bool turn_unlimited(const struct limiter *limiter);

/* Where turns are taken: the credit, in wall time, after which a held-back container begins again; and the most that its
   bucket keeps, for it cannot use any while it is others' turn. */
int64_t turn_credit(const struct limiter *limiter, unsigned percent);
int64_t turn_credit_most(const struct limiter *limiter, int64_t now);

/* Shows that the container is there; for one without a limit, whose launches are not looked at. True: it takes turns. */
bool turn_watch(struct limiter *limiter, int64_t now);

#endif
