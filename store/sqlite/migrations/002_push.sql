-- Push registrations (push.md sections 1 to 3) and their attempt logs. A workflow counts those of its runs, so that an append of one without any asks nothing.
ALTER TABLE workflows ADD COLUMN registrations INTEGER NOT NULL DEFAULT 0;

CREATE TABLE push_registrations (
    tenant          TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    id              TEXT NOT NULL,
    workflow_id     TEXT NOT NULL,
    namespace       TEXT NOT NULL,
    gate            TEXT NOT NULL, -- the key of concurrency at the receiver
    incarnation     INTEGER NOT NULL, -- a token drawn when it was made
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    takes           INTEGER NOT NULL, -- a bit for each kind of record
    next_seq        INTEGER NOT NULL,
    next_index      INTEGER NOT NULL,
    state           TEXT NOT NULL, -- gone: deleted while somebody sent for it
    next_attempt_at INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    failing_since   INTEGER,
    rejects         INTEGER NOT NULL,
    attempt_no      INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    error           TEXT NOT NULL,
    parked_at       INTEGER,
    reason          TEXT NOT NULL,
    lease_token     INTEGER NOT NULL, -- of the send lease, 0 for none
    lease_owner     TEXT NOT NULL,
    lease_request   TEXT NOT NULL,
    lease_until     INTEGER,
    lease_revoked   INTEGER NOT NULL,
    ended_token     INTEGER NOT NULL, -- the last one whose lease was ended, and how
    ended_as        TEXT NOT NULL,
    settle_id       TEXT NOT NULL, -- the last settlement and its outcome, for its repeat
    settle_outcome  BLOB,
    unpark_op       TEXT NOT NULL,
    skipped         INTEGER NOT NULL,
    logged          INTEGER NOT NULL, -- entries of the log that are trimmed by count
    last            BLOB, -- the last outcome, JSON
    settings        BLOB NOT NULL, -- what callers set, JSON, secrets in clear
    PRIMARY KEY (tenant, run_id, id),
    CONSTRAINT push_state CHECK (state IN ('live', 'idle', 'parked', 'gone')),
    CONSTRAINT push_namespace CHECK (namespace IN ('caller', 'operator') AND (namespace = 'operator') = (substr(id, 1, 9) = 'operator:')),
    CONSTRAINT push_cursor CHECK (next_seq >= 1 AND next_index >= 0 AND version >= 1 AND incarnation >= 1),
    CONSTRAINT push_parked CHECK ((state = 'parked') = (parked_at IS NOT NULL) AND (state = 'parked') = (reason <> '')),
    CONSTRAINT push_lease CHECK (lease_token >= 0 AND (lease_token = 0) = (lease_owner = '') AND (lease_token = 0) = (lease_until IS NULL)
        AND (lease_token <> 0 OR NOT lease_revoked)),
    CONSTRAINT push_gone CHECK (state <> 'gone' OR (lease_token <> 0 AND lease_revoked)),
    -- Who rests is in nobody's hands, but for the end of a revoked lease.
    CONSTRAINT push_idle CHECK (state <> 'idle' OR lease_token = 0 OR lease_revoked)
) STRICT;

-- Due order, tenant by tenant, and gate by gate. Idle and parked rows are in neither, nor those that somebody sends for.
CREATE INDEX push_due ON push_registrations (namespace, tenant, next_attempt_at, run_id, id) WHERE state = 'live' AND lease_until IS NULL;
CREATE INDEX push_gates ON push_registrations (namespace, tenant, gate, next_attempt_at, run_id, id) WHERE state = 'live' AND lease_until IS NULL;
-- Send leases by their end, by token and by claim.
CREATE INDEX push_leased ON push_registrations (namespace, lease_until, next_attempt_at) WHERE state = 'live' AND lease_until IS NOT NULL;
CREATE UNIQUE INDEX push_token ON push_registrations (lease_token) WHERE lease_token <> 0;
CREATE INDEX push_claims ON push_registrations (lease_owner, lease_request) WHERE lease_owner <> '';
-- Parked rows by key, and the longest parked first.
CREATE INDEX push_parked ON push_registrations (tenant, run_id, id) WHERE state = 'parked';
CREATE INDEX push_parked_since ON push_registrations (tenant, parked_at, run_id, id) WHERE state = 'parked';
-- What has been failing for long, what is gone, and logs by their length.
CREATE INDEX push_failing ON push_registrations (tenant, failing_since, run_id, id) WHERE state = 'live' AND failing_since IS NOT NULL;
CREATE INDEX push_over ON push_registrations (lease_until) WHERE state = 'gone';
CREATE INDEX push_logged ON push_registrations (logged) WHERE logged > 0;

CREATE TABLE push_log (
    tenant      TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    id          TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    attempt_no  INTEGER NOT NULL,
    entry_id    TEXT NOT NULL,
    at          INTEGER NOT NULL,
    kept        INTEGER NOT NULL, -- for good
    entry       BLOB NOT NULL, -- JSON
    PRIMARY KEY (tenant, run_id, id, incarnation, attempt_no)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX push_log_entries ON push_log (tenant, run_id, id, incarnation, entry_id) WHERE entry_id <> '';
CREATE INDEX push_log_at ON push_log (at) WHERE NOT kept;
