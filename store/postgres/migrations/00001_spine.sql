-- The tables of design section 5. Text that is compared or ordered has collation "C": equality and order are those of bytes (events.md R4).
-- Absent text is '', absent instants and numbers are NULL. Keys are a text[] of pairs: {namespace, value, namespace, value, ...}.
-- Secondary indexes that begin with the tenant have it in collation "POSIX", which is "C" under another name. An index of one collation cannot serve
-- comparisons in the other, so a look-up by primary key can never be planned through one of them, and a query meant for one of them, which says "POSIX",
-- never through the primary key. While a table is small all its indexes cost the same, and a plan chosen then may live until the table is large.
-- The CHECKs are the law of the state machine: what breaks one is a defect of the program or of a hand, never of a caller.

-- +goose Up

-- What the store is, one fact a row: shards is N of shards.md section 1.
CREATE TABLE meta (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- rdv_now is the store's now (I16). Tests put one in its place that reads a shift from a table rdv_clock; a store with that table is no production store.
-- +goose StatementBegin
CREATE FUNCTION rdv_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$;
-- +goose StatementEnd

-- Order only (I9): never given twice, gaps are normal.
CREATE SEQUENCE event_number;
CREATE SEQUENCE wait_number;
CREATE SEQUENCE take_token;

-- One row per workflow, locked and bumped per append. No index names a column that an ordinary append changes (head_seq, updated_at, counts), and half of
-- every page is kept free, so that the bump is a HOT update even when one transaction bumps a whole page of neighbours (HI-48).
CREATE TABLE workflows (
    tenant         text COLLATE "C" NOT NULL,
    workflow_id    text COLLATE "C" NOT NULL,
    shard          integer NOT NULL,
    run_id         text COLLATE "C" NOT NULL,
    type           text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    head_seq       bigint NOT NULL,
    created_at     timestamptz NOT NULL,
    started_at     timestamptz NOT NULL,
    closed_at      timestamptz,
    updated_at     timestamptz NOT NULL,
    parent         text COLLATE "C" NOT NULL,
    failure_code   text COLLATE "C" NOT NULL,
    failure_reason text COLLATE "C" NOT NULL,
    failed_effect  text COLLATE "C" NOT NULL,
    open_effects   integer NOT NULL,
    open_waits     integer NOT NULL,
    live_timers    integer NOT NULL,
    reopened       bigint NOT NULL, -- 0 for a run that never was
    lease_owner    text COLLATE "C" NOT NULL,
    lease_epoch    bigint NOT NULL,
    lease_expires  timestamptz,
    lease_ended    text COLLATE "C" NOT NULL,
    acquire_id     text COLLATE "C" NOT NULL,
    reclaims       integer NOT NULL,
    pause_request  jsonb,
    cancel_request jsonb,
    paused_actor   text COLLATE "C" NOT NULL,
    paused_basis   text COLLATE "C" NOT NULL,
    paused_at      timestamptz,
    PRIMARY KEY (tenant, workflow_id),
    CONSTRAINT workflows_status CHECK (status IN ('running', 'paused', 'completed', 'failed', 'cancelled', 'timed_out')),
    CONSTRAINT workflows_closed CHECK ((closed_at IS NULL) = (status IN ('running', 'paused'))),
    CONSTRAINT workflows_head CHECK (head_seq >= 1),
    CONSTRAINT workflows_lease CHECK (lease_epoch >= 0 AND (lease_owner = '' OR (lease_expires IS NOT NULL AND closed_at IS NULL))),
    CONSTRAINT workflows_paused CHECK ((paused_actor = '') = (paused_basis = ''))
) WITH (fillfactor = 50);

-- Lists, newest start first.
CREATE INDEX workflows_started ON workflows (tenant COLLATE "POSIX", started_at DESC, workflow_id);
-- Owners by the end of their lease: the leases pass.
CREATE INDEX workflows_leased ON workflows (tenant COLLATE "POSIX", lease_expires, workflow_id) WHERE lease_owner <> '';
-- Walks by shard: over all, and over those that are running or paused.
CREATE INDEX workflows_sharded ON workflows (shard, tenant COLLATE "POSIX", workflow_id);
CREATE INDEX workflows_open ON workflows (status, shard, tenant COLLATE "POSIX", workflow_id) WHERE closed_at IS NULL;

-- Closed ones, the longest first: retention. An open workflow has no entry, so its bump stays a HOT update.
CREATE INDEX workflows_closed ON workflows (closed_at, tenant, workflow_id) WHERE closed_at IS NOT NULL;

-- What pruned runs left: their records and batches are to go, and until then nobody starts a run or a workflow of their ids.
CREATE TABLE remnants (
    tenant      text COLLATE "C" NOT NULL,
    run_id      text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    first_seq   bigint NOT NULL,
    last_seq    bigint NOT NULL,
    PRIMARY KEY (tenant, run_id)
);

CREATE INDEX remnants_workflow ON remnants (tenant COLLATE "POSIX", workflow_id);

CREATE TABLE runs (
    tenant       text COLLATE "C" NOT NULL,
    run_id       text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    previous_run text COLLATE "C" NOT NULL,
    next_run     text COLLATE "C" NOT NULL,
    status       text COLLATE "C" NOT NULL,
    first_seq    bigint NOT NULL,
    last_seq     bigint NOT NULL, -- 0 until the run ends
    started_at   timestamptz NOT NULL,
    closed_at    timestamptz,
    sealed_at    timestamptz,
    outcome      text COLLATE "C" NOT NULL,
    start_digest bytea,
    retired      bytea, -- JSON, byte for byte
    PRIMARY KEY (tenant, run_id),
    CONSTRAINT runs_status CHECK (status IN ('running', 'paused', 'completed', 'failed', 'cancelled', 'timed_out', 'continued_as_new')),
    CONSTRAINT runs_sealed CHECK ((sealed_at IS NULL) = (outcome = '')),
    CONSTRAINT runs_seqs CHECK (first_seq >= 1 AND (last_seq = 0 OR last_seq >= first_seq))
) WITH (fillfactor = 80);

CREATE INDEX runs_chain ON runs (tenant COLLATE "POSIX", workflow_id, first_seq);

-- Runs with news nobody drives (runs.md section 6). As small as what is live: every change is vacuumed soon.
CREATE TABLE woken (
    tenant         text COLLATE "C" NOT NULL,
    workflow_id    text COLLATE "C" NOT NULL,
    run_id         text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    since          timestamptz NOT NULL,
    cause          text COLLATE "C" NOT NULL,
    seq            bigint NOT NULL,
    notices        integer NOT NULL,
    next_notice_at timestamptz NOT NULL,
    links          text[] NOT NULL, -- pairs of traceparent and tracestate
    PRIMARY KEY (tenant, workflow_id),
    CONSTRAINT woken_links CHECK (cardinality(links) % 2 = 0)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX woken_due ON woken (tenant COLLATE "POSIX", next_notice_at, workflow_id);

-- Histories. Rows are inserted and never changed.
CREATE TABLE history (
    tenant         text COLLATE "C" NOT NULL,
    workflow_id    text COLLATE "C" NOT NULL,
    seq            bigint NOT NULL,
    run_id         text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    v              integer NOT NULL,
    effect         text COLLATE "C" NOT NULL,
    attempt        integer NOT NULL,
    closes         boolean NOT NULL, -- closes its effect; false where it opens it, and where there is none
    data           text COLLATE "C" NOT NULL, -- canonical JSON, byte for byte
    payload        bytea,
    content_type   text COLLATE "C" NOT NULL,
    source         text COLLATE "C" NOT NULL,
    operator_actor text COLLATE "C" NOT NULL,
    operator_basis text COLLATE "C" NOT NULL,
    recorded_at    timestamptz NOT NULL,
    batch_id       text COLLATE "C" NOT NULL,
    timer_id       text COLLATE "C", -- what data says, of the three kinds about timers; NULL for all others
    PRIMARY KEY (tenant, workflow_id, seq),
    CONSTRAINT history_seq CHECK (seq >= 1),
    CONSTRAINT history_effect CHECK ((effect = '') = (attempt = 0) AND attempt >= 0 AND (effect <> '' OR NOT closes)),
    CONSTRAINT history_operator CHECK ((operator_actor = '') = (operator_basis = ''))
);

-- G7: an attempt of an effect opens once and closes once. It also answers what an effect came to without reading a history.
CREATE UNIQUE INDEX history_effects ON history (tenant COLLATE "POSIX", run_id, effect, attempt, closes) WHERE effect <> '';

-- What became of a timer, without reading a history.
CREATE INDEX history_timers ON history (tenant COLLATE "POSIX", run_id, timer_id, seq) WHERE timer_id IS NOT NULL;

-- First outcomes of named batches, for repeats.
CREATE TABLE batches (
    tenant    text COLLATE "C" NOT NULL,
    run_id    text COLLATE "C" NOT NULL,
    batch_id  text COLLATE "C" NOT NULL,
    digest    bytea NOT NULL,
    first_seq bigint NOT NULL,
    last_seq  bigint NOT NULL,
    outcome   bytea NOT NULL, -- JSON, byte for byte
    PRIMARY KEY (tenant, run_id, batch_id)
);

-- Every event there ever was (I2). No index and no index predicate names a column that a free delivery changes: live events are found by their key rows,
-- claimed ones by their claim, which a delivery at one stroke never sets. So live -> consumed is a HOT update where the page has room, and a part of every
-- page is kept free for it: the new version has shed its payload.
CREATE TABLE events (
    number         bigint NOT NULL,
    version        bigint NOT NULL,
    tenant         text COLLATE "C" NOT NULL,
    source         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    type           text COLLATE "C" NOT NULL,
    keys           text[] COLLATE "C" NOT NULL,
    content_type   text COLLATE "C" NOT NULL,
    payload        bytea,
    digest         bytea,
    received_at    timestamptz NOT NULL,
    live_since     timestamptz NOT NULL,
    expires_at     timestamptz,
    target         text COLLATE "C" NOT NULL,
    state          text COLLATE "C" NOT NULL,
    claim_run      text COLLATE "C" NOT NULL,
    claim_effect   text COLLATE "C" NOT NULL,
    claimed_at     timestamptz,
    workflow_id    text COLLATE "C" NOT NULL, -- with run, effect and seq: where the answer is
    run_id         text COLLATE "C" NOT NULL,
    effect         text COLLATE "C" NOT NULL,
    seq            bigint NOT NULL,
    dead_reason    text COLLATE "C" NOT NULL,
    dead_detail    text COLLATE "C" NOT NULL,
    dead_at        timestamptz,
    erased         boolean NOT NULL,
    offer_failures integer NOT NULL,
    take           bigint NOT NULL,
    take_until     timestamptz,
    take_open      boolean NOT NULL,
    takes          integer NOT NULL,
    requeues       integer NOT NULL,
    purged         boolean NOT NULL,
    op             text COLLATE "C" NOT NULL, -- the last requeue or purge, and who asked for it
    op_actor       text COLLATE "C" NOT NULL,
    op_basis       text COLLATE "C" NOT NULL,
    minted_actor   text COLLATE "C" NOT NULL,
    minted_basis   text COLLATE "C" NOT NULL,
    trace_parent   text COLLATE "C" NOT NULL,
    trace_state    text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, source, id),
    CONSTRAINT events_number UNIQUE (number),
    CONSTRAINT events_state CHECK (state IN ('live', 'claimed', 'consumed', 'dead')),
    CONSTRAINT events_claim CHECK ((state = 'claimed') = (claim_run <> '') AND (claim_run = '') = (claim_effect = '') AND (claim_run = '') = (claimed_at IS NULL)),
    CONSTRAINT events_answer CHECK ((state = 'consumed') = (seq > 0) AND (seq > 0) = (workflow_id <> '' AND run_id <> '' AND effect <> '')),
    CONSTRAINT events_death CHECK ((state = 'dead') = (dead_at IS NOT NULL) AND (state <> 'dead' OR dead_reason <> '')),
    -- An answered event's payload is the history's; an erased one has neither payload nor digest and is never live again (I10).
    CONSTRAINT events_payload CHECK ((state <> 'consumed' OR payload IS NULL) AND erased = (digest IS NULL) AND (NOT erased OR (payload IS NULL AND state NOT IN ('live', 'claimed')))),
    CONSTRAINT events_keys CHECK (cardinality(keys) % 2 = 0),
    -- A purged letter is dead for good, without payload and keys.
    CONSTRAINT events_purged CHECK (NOT purged OR (state = 'dead' AND payload IS NULL AND cardinality(keys) = 0)),
    CONSTRAINT events_op CHECK ((op = '') = (op_actor = '') AND (op = '') = (op_basis = '')),
    CONSTRAINT events_minted CHECK ((minted_actor = '') = (minted_basis = ''))
) WITH (fillfactor = 60);

-- Standing claims by the wait that holds them.
CREATE INDEX events_claimed ON events (tenant COLLATE "POSIX", claim_run, claim_effect) WHERE claim_run <> '';

-- Events that were released or requeued, by when. Whoever looks for what is live again finds them here, and what comes in by its number: an arrival is no row of
-- this index, so it costs none.
CREATE INDEX events_again ON events (live_since, number) WHERE live_since <> received_at;

-- Dead letters in the order of lists, by what one looks for; dead_at is theirs alone. A free delivery changes none of these columns.
CREATE INDEX events_dead ON events (tenant COLLATE "POSIX", number) INCLUDE (dead_reason) WHERE dead_at IS NOT NULL AND NOT purged;
CREATE INDEX events_dead_type ON events (tenant COLLATE "POSIX", type, number) WHERE dead_at IS NOT NULL AND NOT purged;
CREATE INDEX events_dead_reason ON events (dead_reason, tenant COLLATE "POSIX", number) WHERE dead_at IS NOT NULL AND NOT purged;
-- And by age, for retention. It is on an expression so that no plan made while there are few can walk all letters through one of the others.
CREATE INDEX events_died ON events (tenant COLLATE "POSIX", (CASE WHEN NOT purged THEN dead_at END), number)
    WHERE (CASE WHEN NOT purged THEN dead_at END) IS NOT NULL;
-- What a requeue or purge was about, for its repeat.
CREATE INDEX events_op ON events (tenant COLLATE "POSIX", op, number) WHERE op <> '';

-- Dead letters by key: rows exist exactly for those that lists show, one for each key as it was buffered.
CREATE TABLE dead_keys (
    tenant    text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    value     text COLLATE "C" NOT NULL,
    number    bigint NOT NULL,
    PRIMARY KEY (tenant, namespace, value, number)
);

-- The match index: key rows exist exactly for live events. A targeted event has one, under namespace '' and its run; one without keys has one, under '' and ''.
CREATE TABLE event_keys (
    tenant     text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    value      text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    number     bigint NOT NULL,
    live_since timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (tenant, namespace, value, type, number)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Walks what is live in order, and finds an event's key rows. It is on an expression so that no plan can take it for the order of one key's rows, whose
-- place is the primary key: a walk over all that is live, as soon as there are many rows and no statistics.
CREATE INDEX event_keys_number ON event_keys ((number + 0));
-- What falls due: events without an expiry of their own by age, those with one by that. Each key row is in one of the two.
CREATE INDEX event_keys_since ON event_keys (tenant COLLATE "POSIX", live_since, number) WHERE expires_at IS NULL;
CREATE INDEX event_keys_expiring ON event_keys (tenant COLLATE "POSIX", expires_at, number) WHERE expires_at IS NOT NULL;

-- Waits: what is registered and not answered.
CREATE TABLE waits (
    number          bigint NOT NULL,
    version         bigint NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    run_id          text COLLATE "C" NOT NULL,
    effect          text COLLATE "C" NOT NULL,
    workflow_id     text COLLATE "C" NOT NULL,
    shard           integer NOT NULL,
    attempt         integer NOT NULL,
    type            text COLLATE "C" NOT NULL,
    keys            text[] COLLATE "C" NOT NULL,
    from_source     text COLLATE "C" NOT NULL,
    trace_parent    text COLLATE "C" NOT NULL,
    trace_state     text COLLATE "C" NOT NULL,
    registered_at   timestamptz NOT NULL,
    deadline        timestamptz,
    open_since      timestamptz NOT NULL,
    held_number     bigint,
    held_source     text COLLATE "C" NOT NULL,
    held_id         text COLLATE "C" NOT NULL,
    claim_number    bigint NOT NULL, -- drawn when it claimed that event, 0 while it holds none
    parked_at       timestamptz,
    attempts        integer NOT NULL,
    next_attempt_at timestamptz,
    last_error      text COLLATE "C" NOT NULL,
    take            bigint NOT NULL,
    take_until      timestamptz,
    take_settled    boolean NOT NULL,
    quarantined_at  timestamptz,
    PRIMARY KEY (tenant, run_id, effect),
    CONSTRAINT waits_held CHECK (
        (held_number IS NULL) = (held_source = '') AND (held_number IS NULL) = (held_id = '')
        AND (held_number IS NULL) = (claim_number = 0) AND (held_number IS NULL) = (parked_at IS NULL) AND (held_number IS NULL) = (next_attempt_at IS NULL)),
    -- A wait that holds nothing is in nobody's hands: a parked wait without an event would never be found by anyone.
    CONSTRAINT waits_open CHECK (held_number IS NOT NULL OR (attempts = 0 AND last_error = '' AND take_until IS NULL AND quarantined_at IS NULL)),
    CONSTRAINT waits_keys CHECK (cardinality(keys) % 2 = 0)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE UNIQUE INDEX waits_number ON waits (tenant COLLATE "POSIX", number);
-- Waits that were reopened, by when: likewise.
CREATE INDEX waits_again ON waits (open_since, number) WHERE open_since <> registered_at;
-- Parked waits that are retried, and those that are not.
CREATE INDEX waits_due ON waits (tenant COLLATE "POSIX", next_attempt_at, number) WHERE held_number IS NOT NULL AND quarantined_at IS NULL;
CREATE INDEX waits_quarantined ON waits (tenant COLLATE "POSIX", quarantined_at, number) WHERE quarantined_at IS NOT NULL;

-- The other half of the match index: key rows exist exactly for open waits.
CREATE TABLE wait_keys (
    tenant     text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    value      text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    number     bigint NOT NULL,
    open_since timestamptz NOT NULL,
    PRIMARY KEY (tenant, namespace, value, type, number)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Live armings (timers.md section 1): as small as what is armed. Written under the lock of their workflow, but for holds.
CREATE TABLE timers (
    tenant       text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    timer_id     text COLLATE "C" NOT NULL,
    run_id       text COLLATE "C" NOT NULL,
    class        text COLLATE "C" NOT NULL,
    effect       text COLLATE "C" NOT NULL,
    shard        integer NOT NULL,
    fire_at      timestamptz NOT NULL,
    armed_seq    bigint NOT NULL,
    due_at       timestamptz NOT NULL,
    ready_at     timestamptz NOT NULL, -- when it can be taken: due_at, or the end of its hold while that is later
    attempts     integer NOT NULL,
    last_error   text COLLATE "C" NOT NULL,
    parks        integer NOT NULL,
    token        bigint NOT NULL, -- of the latest hold, 0 for none
    holder       text COLLATE "C" NOT NULL,
    hold_epoch   bigint NOT NULL,
    held_until   timestamptz,
    trace_parent text COLLATE "C" NOT NULL,
    trace_state  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, workflow_id, timer_id),
    CONSTRAINT timers_class CHECK (class IN ('author', 'wait', 'run') AND (class = 'wait') = (effect <> '')),
    CONSTRAINT timers_counts CHECK (armed_seq >= 0 AND attempts >= 0 AND parks >= 0),
    CONSTRAINT timers_hold CHECK (token >= 0 AND (token > 0) = (holder <> '') AND (token > 0) = (held_until IS NOT NULL)),
    CONSTRAINT timers_ready CHECK (ready_at = greatest(due_at, held_until))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- What can be taken, and lists by instant: of a shard.
CREATE INDEX timers_ready ON timers (shard, ready_at);
CREATE INDEX timers_fire ON timers (shard, fire_at, tenant, workflow_id, timer_id);
-- Likewise, of a tenant in a shard; and holds, of which there are few, by what they are void by. These are on expressions, and the last two on conditions, that
-- no other index has, so that what asks for them is never planned through one that has many rows beside.
CREATE INDEX timers_due ON timers ((shard + 0), tenant COLLATE "POSIX", ready_at, workflow_id, timer_id);
CREATE INDEX timers_tenant ON timers ((shard + 0), tenant COLLATE "POSIX", fire_at, workflow_id, timer_id);
CREATE INDEX timers_held ON timers ((- shard), hold_epoch) WHERE held_until IS NOT NULL;
CREATE INDEX timers_token ON timers (token) WHERE token <> 0;

-- Who owns which shard (shards.md section 2). No index names a column that a renewal changes, so it is a HOT update, and the key share that fences take on a
-- row keeps nobody from it.
CREATE TABLE shard_leases (
    pool       text COLLATE "C" NOT NULL,
    shard      integer NOT NULL,
    owner      text COLLATE "C" NOT NULL, -- '' is free
    epoch      bigint NOT NULL,
    expires_at timestamptz,
    serving    boolean NOT NULL,
    address    text COLLATE "C" NOT NULL,
    PRIMARY KEY (pool, shard),
    CONSTRAINT shard_leases_epoch CHECK (epoch >= 1),
    CONSTRAINT shard_leases_owner CHECK (owner = '' OR expires_at IS NOT NULL)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The pods of each pool.
CREATE TABLE members (
    pool        text COLLATE "C" NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    address     text COLLATE "C" NOT NULL,
    started_at  timestamptz NOT NULL,
    draining    boolean NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (pool, incarnation)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
