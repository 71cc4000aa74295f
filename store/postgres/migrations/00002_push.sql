-- Push registrations (push.md sections 1 to 3) and their attempt logs.

-- +goose Up

-- A workflow counts the registrations of its runs, so that an append of one without any asks nothing about push.
ALTER TABLE workflows ADD COLUMN registrations integer NOT NULL DEFAULT 0;

CREATE TABLE push_registrations (
    tenant          text COLLATE "C" NOT NULL,
    run_id          text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    workflow_id     text COLLATE "C" NOT NULL,
    namespace       text COLLATE "C" NOT NULL,
    gate            text COLLATE "C" NOT NULL, -- the key of concurrency at the receiver
    incarnation     bigint NOT NULL, -- a token drawn when it was made
    version         bigint NOT NULL,
    created_at      timestamptz NOT NULL,
    takes           bigint NOT NULL, -- a bit for each kind of record
    next_seq        bigint NOT NULL,
    next_index      integer NOT NULL,
    state           text COLLATE "C" NOT NULL, -- gone: deleted while somebody sent for it
    next_attempt_at timestamptz NOT NULL,
    attempts        integer NOT NULL,
    failing_since   timestamptz,
    rejects         integer NOT NULL,
    attempt_no      bigint NOT NULL,
    lost            integer NOT NULL,
    error           text COLLATE "C" NOT NULL,
    parked_at       timestamptz,
    reason          text COLLATE "C" NOT NULL,
    lease_token     bigint NOT NULL, -- of the send lease, 0 for none
    lease_owner     text COLLATE "C" NOT NULL,
    lease_request   text COLLATE "C" NOT NULL,
    lease_until     timestamptz,
    lease_revoked   boolean NOT NULL,
    ended_token     bigint NOT NULL, -- the last one whose lease was ended, and how
    ended_as        text COLLATE "C" NOT NULL,
    settle_id       text COLLATE "C" NOT NULL, -- the last settlement and its outcome, for its repeat
    settle_outcome  bytea,
    unpark_op       text COLLATE "C" NOT NULL,
    skipped         bigint NOT NULL,
    logged          integer NOT NULL, -- entries of the log that are trimmed by count
    last            bytea, -- the last outcome, JSON
    settings        bytea NOT NULL, -- what callers set, JSON, secrets in clear
    PRIMARY KEY (tenant, run_id, id),
    CONSTRAINT push_state CHECK (state IN ('live', 'idle', 'parked', 'gone')),
    CONSTRAINT push_namespace CHECK (namespace IN ('caller', 'operator') AND (namespace = 'operator') = (left(id, 9) = 'operator:')),
    CONSTRAINT push_cursor CHECK (next_seq >= 1 AND next_index >= 0 AND version >= 1 AND incarnation >= 1),
    CONSTRAINT push_parked CHECK ((state = 'parked') = (parked_at IS NOT NULL) AND (state = 'parked') = (reason <> '')),
    CONSTRAINT push_lease CHECK (lease_token >= 0 AND (lease_token = 0) = (lease_owner = '') AND (lease_token = 0) = (lease_until IS NULL)
        AND (lease_token <> 0 OR NOT lease_revoked)),
    CONSTRAINT push_gone CHECK (state <> 'gone' OR (lease_token <> 0 AND lease_revoked)),
    -- Who rests is in nobody's hands, but for the end of a revoked lease.
    CONSTRAINT push_idle CHECK (state <> 'idle' OR lease_token = 0 OR lease_revoked)
) WITH (fillfactor = 70); -- a settlement that keeps its lease moves a cursor that no index has

-- Due order, tenant by tenant, and gate by gate. Idle and parked rows are in neither, nor those that somebody sends for (PU-39).
CREATE INDEX push_due ON push_registrations (namespace, tenant COLLATE "POSIX", next_attempt_at, run_id, id) WHERE state = 'live' AND lease_until IS NULL;
CREATE INDEX push_gates ON push_registrations (namespace, tenant COLLATE "POSIX", gate COLLATE "POSIX", next_attempt_at, run_id, id)
    WHERE state = 'live' AND lease_until IS NULL;
-- Send leases by their end, by token and by claim.
CREATE INDEX push_leased ON push_registrations (namespace, lease_until, next_attempt_at) WHERE state = 'live' AND lease_until IS NOT NULL;
CREATE UNIQUE INDEX push_token ON push_registrations (lease_token) WHERE lease_token <> 0;
CREATE INDEX push_claims ON push_registrations (lease_owner, lease_request) WHERE lease_owner <> '';
-- Parked rows by key, and the longest parked first.
CREATE INDEX push_parked ON push_registrations (tenant COLLATE "POSIX", run_id, id) WHERE state = 'parked';
CREATE INDEX push_parked_since ON push_registrations (tenant COLLATE "POSIX", parked_at, run_id, id) WHERE state = 'parked';
-- What has been failing for long, what is gone, and logs by their length.
CREATE INDEX push_failing ON push_registrations (tenant COLLATE "POSIX", failing_since, run_id, id) WHERE state = 'live' AND failing_since IS NOT NULL;
CREATE INDEX push_over ON push_registrations (lease_until) WHERE state = 'gone';
CREATE INDEX push_logged ON push_registrations (logged) WHERE logged > 0;

CREATE TABLE push_log (
    tenant      text COLLATE "C" NOT NULL,
    run_id      text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    attempt_no  bigint NOT NULL,
    entry_id    text COLLATE "C" NOT NULL,
    at          timestamptz NOT NULL,
    kept        boolean NOT NULL, -- for good
    entry       bytea NOT NULL, -- JSON
    PRIMARY KEY (tenant, run_id, id, incarnation, attempt_no)
);

CREATE UNIQUE INDEX push_log_entries ON push_log (tenant COLLATE "POSIX", run_id, id, incarnation, entry_id) WHERE entry_id <> '';
CREATE INDEX push_log_at ON push_log (at) WHERE NOT kept;
