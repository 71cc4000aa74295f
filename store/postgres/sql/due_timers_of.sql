-- Timers that can be taken now, for each tenant its own number of them, in its own part of a list of shards and behind its own position, the longest so first.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM unnest($3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bigint[], $8::integer[], $9::integer[])
    AS k (tenant, after, workflow_id, timer_id, most, first, last)
CROSS JOIN LATERAL (
    SELECT t.*
    FROM unnest(($2::integer[])[k.first:k.last]) AS s (shard)
    CROSS JOIN LATERAL (
        (
            SELECT t.ready_at AS since, t.*
            FROM timers t
            WHERE t.shard + 0 = s.shard AND t.tenant COLLATE "POSIX" = k.tenant AND t.ready_at <= $1
                AND (t.ready_at, t.workflow_id, t.timer_id) > (k.after, k.workflow_id, k.timer_id)
            ORDER BY t.ready_at, t.workflow_id, t.timer_id
            LIMIT k.most
        )
        UNION ALL
        (
            -- Held by an owner that was deposed since.
            SELECT t.due_at AS since, t.*
            FROM (SELECT * FROM shard_leases l WHERE l.pool = 'timer' AND l.shard = s.shard OFFSET 0) l
            CROSS JOIN LATERAL (
                SELECT * FROM timers t WHERE - t.shard = - s.shard AND t.held_until IS NOT NULL AND t.hold_epoch < l.epoch OFFSET 0
            ) t
            WHERE t.ready_at > $1 AND t.due_at <= $1 AND t.tenant = k.tenant
                AND (t.due_at, t.workflow_id, t.timer_id) > (k.after, k.workflow_id, k.timer_id)
        )
    ) t
    ORDER BY t.since, t.workflow_id, t.timer_id
    LIMIT k.most
) t
ORDER BY t.since, t.tenant, t.workflow_id, t.timer_id
