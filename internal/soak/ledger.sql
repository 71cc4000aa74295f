-- What the plane promised, beside what it kept.
CREATE SCHEMA soak;
CREATE TABLE soak.accepted (tenant text COLLATE "C", source text COLLATE "C", id text COLLATE "C", door text, at timestamptz, PRIMARY KEY (tenant, source, id));
CREATE TABLE soak.registered (tenant text COLLATE "C", run_id text COLLATE "C", effect text COLLATE "C", answered boolean, PRIMARY KEY (tenant, run_id, effect));
CREATE TABLE soak.started (tenant text COLLATE "C", run_id text COLLATE "C", workflow_id text COLLATE "C", ended boolean, PRIMARY KEY (tenant, run_id));
CREATE TABLE soak.pairs (tenant text COLLATE "C", run_id text COLLATE "C", effect text COLLATE "C", source text COLLATE "C", id text COLLATE "C");
CREATE TABLE soak.races (LIKE soak.pairs);
CREATE TABLE soak.completes (tenant text COLLATE "C", workflow_id text COLLATE "C", PRIMARY KEY (tenant, workflow_id));
CREATE TABLE soak.recorded (tenant text COLLATE "C", run_id text COLLATE "C", seq bigint, kinds text[] COLLATE "C", timer_id text COLLATE "C", fire_at timestamptz);
CREATE TABLE soak.disturbances (what text, began timestamptz, ended timestamptz);
CREATE TABLE soak.limits (fail_over interval);

-- Every arming there ever was (timers.md section 1), when it was due, and the one record that ended it: which, and of what kind. ended is NULL while it lives.
CREATE VIEW soak.armings AS
WITH records AS (
    SELECT tenant, workflow_id, run_id, seq, kind, effect, attempt, timer_id, data::jsonb AS data, recorded_at,
        min(seq) FILTER (WHERE kind IN ('run.completed', 'run.failed', 'run.cancelled', 'run.timed_out', 'run.continued'))
            OVER (PARTITION BY tenant, run_id ORDER BY seq ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS closed,
        max(data::jsonb ->> 'deadline') FILTER (WHERE kind = 'run.started') OVER (PARTITION BY tenant, run_id) AS deadline,
        lead(seq) OVER (PARTITION BY tenant, run_id, timer_id ORDER BY seq) AS next_of_timer,
        lead(seq) OVER (PARTITION BY tenant, run_id, effect, attempt ORDER BY seq) AS next_of_wait
    FROM history
    WHERE kind LIKE 'timer.%' OR kind LIKE 'wait.%' OR kind LIKE 'run.%'
), armings AS (
    SELECT tenant, workflow_id, run_id, 'author' AS class, timer_id AS name, seq, (data ->> 'fire_at')::timestamptz AS fire_at, recorded_at, least(next_of_timer, closed) AS ended
    FROM records WHERE kind = 'timer.started'
    UNION ALL
    SELECT tenant, workflow_id, run_id, 'wait', effect, seq, (data ->> 'deadline')::timestamptz, recorded_at, least(next_of_wait, closed)
    FROM records WHERE kind = 'wait.registered' AND data ? 'deadline'
    UNION ALL
    SELECT tenant, workflow_id, run_id, 'run', '', seq, deadline::timestamptz, recorded_at, closed
    FROM records WHERE kind IN ('run.started', 'run.reopened') AND deadline IS NOT NULL
)
SELECT a.tenant, a.workflow_id, a.run_id, a.class, a.name, a.seq, a.fire_at, greatest(a.fire_at, a.recorded_at) AS due, a.ended, e.kind AS how, e.recorded_at AS ended_at
FROM armings a LEFT JOIN history e ON e.tenant = a.tenant AND e.workflow_id = a.workflow_id AND e.seq = a.ended;

-- What fired although no driver was ever there: nothing but the plane delayed it. None of a copy: it makes every lease's epoch another.
CREATE VIEW soak.fired AS
SELECT a.* FROM soak.armings a JOIN workflows w USING (tenant, workflow_id)
WHERE w.lease_epoch = 0 AND (a.how IN ('timer.fired', 'wait.timed_out') OR a.class = 'run' AND a.how = 'run.timed_out');
