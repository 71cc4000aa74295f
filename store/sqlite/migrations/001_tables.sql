-- The tables of design section 5. Text compares by bytes (BINARY, events.md R4). Absent text is '', absent instants and numbers are NULL, instants are
-- microseconds since 1970, truth is 0 or 1. Keys and links are JSON: an array of pairs, [["namespace","value"],...].
-- The CHECKs are the law of the state machine: what breaks one is a defect of the program or of a hand, never of a caller.

-- What the store is, one fact a row: shards is N of shards.md section 1.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers up to value may have been given; none is ever given twice (I9), gaps are normal.
CREATE TABLE counters (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('event', 0), ('wait', 0), ('take', 0);

-- One row per workflow, bumped per append. No index names a column that an ordinary append changes.
CREATE TABLE workflows (
    tenant         TEXT NOT NULL,
    workflow_id    TEXT NOT NULL,
    shard          INTEGER NOT NULL,
    run_id         TEXT NOT NULL,
    type           TEXT NOT NULL,
    queue          TEXT NOT NULL,
    status         TEXT NOT NULL,
    head_seq       INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    closed_at      INTEGER,
    updated_at     INTEGER NOT NULL,
    parent         TEXT NOT NULL,
    failure_code   TEXT NOT NULL,
    failure_reason TEXT NOT NULL,
    failed_effect  TEXT NOT NULL,
    open_effects   INTEGER NOT NULL,
    open_waits     INTEGER NOT NULL,
    live_timers    INTEGER NOT NULL,
    reopened       INTEGER NOT NULL, -- seq of the current run's last run.reopened, 0 for none
    lease_owner    TEXT NOT NULL,
    lease_epoch    INTEGER NOT NULL,
    lease_expires  INTEGER,
    lease_ended    TEXT NOT NULL,
    acquire_id     TEXT NOT NULL,
    reclaims       INTEGER NOT NULL,
    pause_request  TEXT,
    cancel_request TEXT,
    paused_actor   TEXT NOT NULL,
    paused_basis   TEXT NOT NULL,
    paused_at      INTEGER,
    PRIMARY KEY (tenant, workflow_id),
    CONSTRAINT workflows_status CHECK (status IN ('running', 'paused', 'completed', 'failed', 'cancelled', 'timed_out')),
    CONSTRAINT workflows_closed CHECK ((closed_at IS NULL) = (status IN ('running', 'paused'))),
    CONSTRAINT workflows_head CHECK (head_seq >= 1),
    CONSTRAINT workflows_lease CHECK (lease_epoch >= 0 AND (lease_owner = '' OR (lease_expires IS NOT NULL AND closed_at IS NULL))),
    CONSTRAINT workflows_paused CHECK ((paused_actor = '') = (paused_basis = ''))
) STRICT;

-- Lists, newest start first.
CREATE INDEX workflows_started ON workflows (tenant, started_at DESC, workflow_id);
-- Owners by the end of their lease: the leases pass.
CREATE INDEX workflows_leased ON workflows (tenant, lease_expires, workflow_id) WHERE lease_owner <> '';
-- Enumerations by shard, of each status apart (history.md section 7).
CREATE INDEX workflows_heads ON workflows (shard, status, tenant, workflow_id);

-- Closed ones, the longest first: retention.
CREATE INDEX workflows_closed ON workflows (closed_at, tenant, workflow_id) WHERE closed_at IS NOT NULL;

-- What pruned runs left: their records and batches are to go, and until then nobody starts a run or a workflow of their ids.
CREATE TABLE remnants (
    tenant      TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    PRIMARY KEY (tenant, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX remnants_workflow ON remnants (tenant, workflow_id);

CREATE TABLE runs (
    tenant       TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    previous_run TEXT NOT NULL,
    next_run     TEXT NOT NULL,
    status       TEXT NOT NULL,
    first_seq    INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL, -- 0 until the run ends
    started_at   INTEGER NOT NULL,
    closed_at    INTEGER,
    sealed_at    INTEGER,
    outcome      TEXT NOT NULL,
    start_digest BLOB,
    retired      BLOB, -- JSON, byte for byte
    PRIMARY KEY (tenant, run_id),
    CONSTRAINT runs_status CHECK (status IN ('running', 'paused', 'completed', 'failed', 'cancelled', 'timed_out', 'continued_as_new')),
    CONSTRAINT runs_sealed CHECK ((sealed_at IS NULL) = (outcome = '')),
    CONSTRAINT runs_seqs CHECK (first_seq >= 1 AND (last_seq = 0 OR last_seq >= first_seq))
) STRICT;

CREATE INDEX runs_chain ON runs (tenant, workflow_id, first_seq);

-- Runs with news nobody drives (runs.md section 6).
CREATE TABLE woken (
    tenant         TEXT NOT NULL,
    workflow_id    TEXT NOT NULL,
    run_id         TEXT NOT NULL,
    queue          TEXT NOT NULL,
    since          INTEGER NOT NULL,
    cause          TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    notices        INTEGER NOT NULL,
    next_notice_at INTEGER NOT NULL,
    links          TEXT NOT NULL,
    PRIMARY KEY (tenant, workflow_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX woken_due ON woken (tenant, next_notice_at, workflow_id);

-- Histories. Rows are inserted and never changed.
CREATE TABLE history (
    tenant         TEXT NOT NULL,
    workflow_id    TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    run_id         TEXT NOT NULL,
    kind           TEXT NOT NULL,
    v              INTEGER NOT NULL,
    effect         TEXT NOT NULL,
    attempt        INTEGER NOT NULL,
    closes         INTEGER NOT NULL, -- closes its effect; 0 where it opens it, and where there is none
    data           TEXT NOT NULL, -- canonical JSON, byte for byte
    payload        BLOB,
    content_type   TEXT NOT NULL,
    source         TEXT NOT NULL,
    operator_actor TEXT NOT NULL,
    operator_basis TEXT NOT NULL,
    recorded_at    INTEGER NOT NULL,
    batch_id       TEXT NOT NULL,
    PRIMARY KEY (tenant, workflow_id, seq),
    CONSTRAINT history_seq CHECK (seq >= 1),
    CONSTRAINT history_effect CHECK ((effect = '') = (attempt = 0) AND attempt >= 0 AND (effect <> '' OR NOT closes)),
    CONSTRAINT history_operator CHECK ((operator_actor = '') = (operator_basis = ''))
) STRICT;

-- G7: an attempt of an effect opens once and closes once. It also answers what an effect came to without reading a history.
CREATE UNIQUE INDEX history_effects ON history (tenant, run_id, effect, attempt, closes) WHERE effect <> '';
-- What happened to a timer last (timers.md section 2). Other records are not in it, and cost no more than the look at their kind: a list of kinds would be made
-- anew for every record that is written.
CREATE INDEX history_timers ON history (tenant, run_id, iif(json_valid(data), data ->> 'timer_id', NULL), seq)
WHERE kind >= 'timer.' AND kind < 'timer/';

-- First outcomes of named batches, for repeats.
CREATE TABLE batches (
    tenant    TEXT NOT NULL,
    run_id    TEXT NOT NULL,
    batch_id  TEXT NOT NULL,
    digest    BLOB NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    outcome   BLOB NOT NULL, -- JSON, byte for byte
    PRIMARY KEY (tenant, run_id, batch_id)
) STRICT;

-- Every event there ever was (I2).
CREATE TABLE events (
    number         INTEGER PRIMARY KEY,
    version        INTEGER NOT NULL,
    tenant         TEXT NOT NULL,
    source         TEXT NOT NULL,
    id             TEXT NOT NULL,
    type           TEXT NOT NULL,
    keys           TEXT NOT NULL,
    digest         BLOB,
    received_at    INTEGER NOT NULL,
    live_since     INTEGER NOT NULL,
    expires_at     INTEGER,
    target         TEXT NOT NULL,
    state          TEXT NOT NULL,
    claim_run      TEXT NOT NULL,
    claim_effect   TEXT NOT NULL,
    claimed_at     INTEGER,
    workflow_id    TEXT NOT NULL, -- with run, effect and seq: where the answer is
    run_id         TEXT NOT NULL,
    effect         TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    dead_reason    TEXT NOT NULL,
    dead_detail    TEXT NOT NULL,
    dead_at        INTEGER,
    erased         INTEGER NOT NULL,
    offer_failures INTEGER NOT NULL,
    take           INTEGER NOT NULL,
    take_until     INTEGER,
    take_open      INTEGER NOT NULL,
    takes          INTEGER NOT NULL,
    requeues       INTEGER NOT NULL,
    purged         INTEGER NOT NULL,
    op             TEXT NOT NULL, -- the last requeue or purge, and who asked for it
    op_actor       TEXT NOT NULL,
    op_basis       TEXT NOT NULL,
    minted_actor   TEXT NOT NULL,
    minted_basis   TEXT NOT NULL,
    trace_parent   TEXT NOT NULL,
    trace_state    TEXT NOT NULL,
    content_type   TEXT NOT NULL,
    payload        BLOB, -- last, so that a read without it does not follow its overflow pages
    UNIQUE (tenant, source, id),
    CONSTRAINT events_state CHECK (state IN ('live', 'claimed', 'consumed', 'dead')),
    CONSTRAINT events_claim CHECK ((state = 'claimed') = (claim_run <> '') AND (claim_run = '') = (claim_effect = '') AND (claim_run = '') = (claimed_at IS NULL)),
    CONSTRAINT events_answer CHECK ((state = 'consumed') = (seq > 0) AND (seq > 0) = (workflow_id <> '' AND run_id <> '' AND effect <> '')),
    CONSTRAINT events_death CHECK ((state = 'dead') = (dead_at IS NOT NULL) AND (state <> 'dead' OR dead_reason <> '')),
    -- An answered event's payload is the history's; an erased one has neither payload nor digest and is never live again (I10).
    CONSTRAINT events_payload CHECK ((state <> 'consumed' OR payload IS NULL) AND erased = (digest IS NULL) AND (NOT erased OR (payload IS NULL AND state NOT IN ('live', 'claimed')))),
    -- A purged letter is dead for good, without payload and keys.
    CONSTRAINT events_purged CHECK (NOT purged OR (state = 'dead' AND payload IS NULL AND keys = '[]')),
    CONSTRAINT events_op CHECK ((op = '') = (op_actor = '') AND (op = '') = (op_basis = '')),
    CONSTRAINT events_minted CHECK ((minted_actor = '') = (minted_basis = ''))
) STRICT;

-- Standing claims by the wait that holds them.
CREATE INDEX events_claimed ON events (tenant, claim_run, claim_effect) WHERE claim_run <> '';

-- Events that were released or requeued, by when. Whoever looks for what is live again finds them here, and what comes in by its number: an arrival is no row of
-- this index, so it costs none.
CREATE INDEX events_again ON events (live_since, number) WHERE live_since <> received_at;

-- Dead letters in the order of lists, by what one looks for. No predicate names a column that a free delivery changes; where letters are counted, the index has the
-- columns of its own predicate too, so that no row is read.
CREATE INDEX events_dead ON events (tenant, number, dead_reason, dead_at, purged) WHERE dead_at IS NOT NULL AND NOT purged;
CREATE INDEX events_dead_type ON events (tenant, type, number) WHERE dead_at IS NOT NULL AND NOT purged;
CREATE INDEX events_dead_reason ON events (dead_reason, tenant, number, dead_at, purged) WHERE dead_at IS NOT NULL AND NOT purged;
-- And by age, for retention.
CREATE INDEX events_died ON events (tenant, dead_at, number) WHERE dead_at IS NOT NULL AND NOT purged;
-- What a requeue or purge was about, for its repeat.
CREATE INDEX events_op ON events (tenant, op, number) WHERE op <> '';

-- Dead letters by key: rows exist exactly for those that lists show, one for each key as it was buffered.
CREATE TABLE dead_keys (
    tenant    TEXT NOT NULL,
    namespace TEXT NOT NULL,
    value     TEXT NOT NULL,
    number    INTEGER NOT NULL,
    PRIMARY KEY (tenant, namespace, value, number)
) STRICT, WITHOUT ROWID;

-- The match index: key rows exist exactly for live events. A targeted event has one, under namespace '' and its run; one without keys has one, under '' and ''.
CREATE TABLE event_keys (
    tenant     TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    value      TEXT NOT NULL,
    type       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    live_since INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant, namespace, value, type, number)
) STRICT, WITHOUT ROWID;

-- Walks what is live in order, and finds an event's key rows.
CREATE INDEX event_keys_number ON event_keys (number);
-- What falls due: events without an expiry of their own by age, those with one by that. Each key row is in one of the two, and they have the column of their own
-- predicate too, so that no row is read.
CREATE INDEX event_keys_since ON event_keys (tenant, live_since, number, expires_at) WHERE expires_at IS NULL;
CREATE INDEX event_keys_expiring ON event_keys (tenant, expires_at, number) WHERE expires_at IS NOT NULL;

-- Waits: what is registered and not answered.
CREATE TABLE waits (
    number          INTEGER PRIMARY KEY,
    version         INTEGER NOT NULL,
    tenant          TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    effect          TEXT NOT NULL,
    workflow_id     TEXT NOT NULL,
    shard           INTEGER NOT NULL,
    attempt         INTEGER NOT NULL,
    type            TEXT NOT NULL,
    keys            TEXT NOT NULL,
    from_source     TEXT NOT NULL,
    trace_parent    TEXT NOT NULL,
    trace_state     TEXT NOT NULL,
    registered_at   INTEGER NOT NULL,
    deadline        INTEGER,
    open_since      INTEGER NOT NULL,
    held_number     INTEGER,
    held_source     TEXT NOT NULL,
    held_id         TEXT NOT NULL,
    claim_number    INTEGER NOT NULL, -- drawn when it claimed that event, 0 while it holds none
    parked_at       INTEGER,
    attempts        INTEGER NOT NULL,
    next_attempt_at INTEGER,
    last_error      TEXT NOT NULL,
    take            INTEGER NOT NULL,
    take_until      INTEGER,
    take_settled    INTEGER NOT NULL,
    quarantined_at  INTEGER,
    UNIQUE (tenant, run_id, effect),
    CONSTRAINT waits_held CHECK (
        (held_number IS NULL) = (held_source = '') AND (held_number IS NULL) = (held_id = '')
        AND (held_number IS NULL) = (claim_number = 0) AND (held_number IS NULL) = (parked_at IS NULL) AND (held_number IS NULL) = (next_attempt_at IS NULL)),
    -- A wait that holds nothing is in nobody's hands: a parked wait without an event would never be found by anyone.
    CONSTRAINT waits_open CHECK (held_number IS NOT NULL OR (attempts = 0 AND last_error = '' AND take_until IS NULL AND quarantined_at IS NULL))
) STRICT;

CREATE INDEX waits_listed ON waits (tenant, number);
-- Waits that were reopened, by when: likewise.
CREATE INDEX waits_again ON waits (open_since, number) WHERE open_since <> registered_at;
-- Parked waits that are retried, and those that are not.
CREATE INDEX waits_due ON waits (tenant, next_attempt_at, number) WHERE held_number IS NOT NULL AND quarantined_at IS NULL;
CREATE INDEX waits_quarantined ON waits (tenant, quarantined_at, number) WHERE quarantined_at IS NOT NULL;

-- The other half of the match index: key rows exist exactly for open waits.
CREATE TABLE wait_keys (
    tenant     TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    value      TEXT NOT NULL,
    type       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    open_since INTEGER NOT NULL,
    PRIMARY KEY (tenant, namespace, value, type, number)
) STRICT, WITHOUT ROWID;

-- Live armings (timers.md section 1). ready_at is when a row can be taken: due_at, or the end of its hold while that is later.
CREATE TABLE timers (
    tenant       TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    timer_id     TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    class        TEXT NOT NULL,
    effect       TEXT NOT NULL,
    shard        INTEGER NOT NULL,
    fire_at      INTEGER NOT NULL,
    armed_seq    INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    ready_at     INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    last_error   TEXT NOT NULL,
    parks        INTEGER NOT NULL,
    token        INTEGER NOT NULL, -- of the latest hold, 0 for none
    holder       TEXT NOT NULL,
    hold_epoch   INTEGER NOT NULL,
    held_until   INTEGER,
    trace_parent TEXT NOT NULL,
    trace_state  TEXT NOT NULL,
    PRIMARY KEY (tenant, workflow_id, timer_id),
    CONSTRAINT timers_class CHECK (class IN ('author', 'wait', 'run') AND (class = 'wait') = (effect <> '')),
    CONSTRAINT timers_seq CHECK (armed_seq >= 0),
    CONSTRAINT timers_ready CHECK (ready_at = max(due_at, coalesce(held_until, due_at))),
    CONSTRAINT timers_held CHECK (token >= 0 AND (token = 0) = (holder = '') AND (token = 0) = (held_until IS NULL))
) STRICT, WITHOUT ROWID;

-- When something can be taken in a shard, and what, tenant by tenant.
CREATE INDEX timers_next ON timers (shard, ready_at, due_at);
CREATE INDEX timers_ready ON timers (shard, tenant, ready_at, workflow_id, timer_id);
-- Lists, with what narrows them.
CREATE INDEX timers_firing ON timers (fire_at, tenant, workflow_id, timer_id, shard);
-- Holds: those of older epochs than their shard's hold nothing.
CREATE INDEX timers_holds ON timers (shard, hold_epoch, tenant, due_at, workflow_id, timer_id, ready_at, token) WHERE token <> 0;
CREATE UNIQUE INDEX timers_token ON timers (token) WHERE token <> 0;

-- Who owns a shard in a pool (shards.md section 2). Epochs only rise, so a row stays when its shard is free.
CREATE TABLE shard_leases (
    pool       TEXT NOT NULL,
    shard      INTEGER NOT NULL,
    owner      TEXT NOT NULL, -- '' is free
    epoch      INTEGER NOT NULL,
    expires_at INTEGER,
    serving    INTEGER NOT NULL,
    address    TEXT NOT NULL,
    PRIMARY KEY (pool, shard),
    CONSTRAINT shard_leases_epoch CHECK (epoch >= 1 AND (owner = '' OR expires_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    pool        TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    address     TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    draining    INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (pool, incarnation)
) STRICT, WITHOUT ROWID;
