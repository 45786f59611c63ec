/* Slots of a ring: P ranks pass chunks of K and V on, each through S receive slots.
 *
 * Each rank does what build_schedule() writes: receives into all slots and the send of its own
 * chunk are posted first; at each step it waits for the chunk, posts the send that passes it on
 * and computes on it; a slot is filled again only when its send was waited for. STEPS may be
 * larger than P-1 (the ring goes round again, as it does for the next layer), so that slots are
 * reused even by few ranks. Messages take their time: a chunk leaves at one moment and arrives at
 * a later one.
 *
 * An arrival is known by its step number, an epoch, and never by a flag.
 *
 *   DIRECT        chunks come straight from their owners, S = 1
 *   RENDEZVOUS    a send leaves only when its receive is posted, and ends when it has arrived;
 *                 else sends are buffered and end when they have left
 *
 * Mistakes that the checker must refute:
 *   FLAGS                a flag says that a slot was filled, and nobody takes it back
 *   NO_WAIT_TO_COMPUTE   a chunk is computed on without waiting for it
 *   NO_WAIT_TO_REUSE     a slot is filled again while it may still be sent from
 *   SEND_FIRST           a receive is posted only after the own send has ended
 *   ONE_SLOT_PASSED_ON   a ring that passes chunks on through one slot (S = 1 without DIRECT)
 */
#ifndef P
#define P 3
#endif
#ifndef S
#define S 2
#endif
#ifndef STEPS
#define STEPS 4
#endif

#define NOTHING 255
#define HOME 254
#define SLOT(rank, step) ((rank) * S + ((step) - 1) % S)
#define OWNER(rank, step) (((rank) + STEPS * P - (step)) % P)

byte content[P * S];    /* the owner of the chunk in a slot */
byte arrived[P * S];    /* the step whose chunk arrived in it last: the epoch */
bool flag[P * S];       /* only for the mistake FLAGS */
byte expected[P * S];   /* the step whose receive is posted and not complete, or 0 */
byte computing[P];      /* the slot that is computed on, HOME or NOTHING */
byte posted[P];         /* sends posted so far, of step 0, 1, … */
byte ended[P];          /* of these, sends that have ended */

#ifdef DIRECT
#define SENDER(rank, step) OWNER(rank, step)
#define IS_POSTED(rank, step) (posted[SENDER(rank, step)] >= 1)
#define VALUE(rank, step) OWNER(rank, step)
#else
#define SENDER(rank, step) (((rank) + P - 1) % P)
#define IS_POSTED(rank, step) (posted[SENDER(rank, step)] >= (step))
#define VALUE(rank, step) \
  ((step) == 1 -> SENDER(rank, step) : content[SLOT(SENDER(rank, step), (step) - 1)])
#endif

#ifdef RENDEZVOUS
#define MAY_LEAVE(rank, step) (IS_POSTED(rank, step) && expected[SLOT(rank, step)] == (step))
#else
#define MAY_LEAVE(rank, step) IS_POSTED(rank, step)
#endif

/* Whether a chunk in this slot is still to be sent: its send is posted and has not ended. */
#define BEING_SENT(rank, step) (posted[rank] > (step) && ended[rank] <= (step))

inline end_send(rank) { ended[rank]++ }

/* All messages to one rank, in order. */
proctype wire(byte to) {
  chan under_way = [STEPS] of { byte };
  byte left = 0;  /* messages that have left */
  byte step = 1;  /* of the next one to arrive */
  byte value;
  do
  :: left < STEPS && MAY_LEAVE(to, left + 1) ->
     atomic {
       under_way ! VALUE(to, left + 1);
       left++;
#ifndef RENDEZVOUS
       end_send(SENDER(to, left));
#endif
     }
  :: nempty(under_way) && expected[SLOT(to, step)] == step ->
     atomic {
       under_way ? value;
       assert(computing[to] != SLOT(to, step));  /* overwritten while it is read */
#ifndef DIRECT
       assert(step <= S || !BEING_SENT(to, step - S));  /* overwritten while it is sent */
#endif
       content[SLOT(to, step)] = value;
       arrived[SLOT(to, step)] = step;
       flag[SLOT(to, step)] = true;
       expected[SLOT(to, step)] = 0;
#ifdef RENDEZVOUS
       end_send(SENDER(to, step));
#endif
       step++;
     }
  :: step > STEPS -> break
  od
}

inline post_receive(rank, step) {
  assert(expected[SLOT(rank, step)] == 0);
  expected[SLOT(rank, step)] = step
}

inline wait_receive(rank, step) {
#ifdef FLAGS
  flag[SLOT(rank, step)]
#elif defined(NO_WAIT_TO_COMPUTE)
  skip
#else
  arrived[SLOT(rank, step)] == step
#endif
}

inline compute(rank, step) {
  computing[rank] = SLOT(rank, step);
  assert(content[SLOT(rank, step)] == OWNER(rank, step));
  assert(content[SLOT(rank, step)] == OWNER(rank, step));  /* the same until the end */
  computing[rank] = NOTHING
}

proctype rank(byte me) {
  byte step = 1;
#ifdef SEND_FIRST
  posted[me] = 1;
  ended[me] >= 1;
#endif
  do
  :: step <= S && step <= STEPS -> atomic { post_receive(me, step); step++ }
  :: else -> break
  od;
#ifndef SEND_FIRST
  posted[me] = 1;
#endif
  step = 1;
  do
  :: step <= STEPS ->
     if
     :: step > 1 && step - 1 + S <= STEPS ->
#ifndef DIRECT
#ifndef NO_WAIT_TO_REUSE
        ended[me] >= step;  /* sends 0 … step-1 */
#endif
#endif
        atomic { post_receive(me, step - 1 + S) }
     :: else
     fi;
     wait_receive(me, step);
#ifndef DIRECT
     if
     :: step < STEPS -> posted[me] = step + 1
     :: else
     fi;
#endif
     compute(me, step);
     step++
  :: else -> break
  od;
#ifdef DIRECT
  ended[me] >= P - 1;
#else
  ended[me] >= STEPS;
#endif
}

init {
  byte i = 0;
  atomic {
    do
    :: i < P * S -> content[i] = NOTHING; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < P -> computing[i] = NOTHING; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < P -> run wire(i); run rank(i); i++
    :: else -> break
    od
  }
}
