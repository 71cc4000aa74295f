-- The earliest instant that something can be taken, for each shard: one look into an index, and one at what a deposed owner holds.
SELECT s.shard, least(f.ready_at, h.due_at)
FROM unnest($1::integer[]) AS s (shard)
CROSS JOIN LATERAL (SELECT t.ready_at FROM timers t WHERE t.shard = s.shard ORDER BY t.ready_at LIMIT 1) f
LEFT JOIN LATERAL (
    SELECT min(t.due_at) AS due_at
    FROM (SELECT * FROM shard_leases l WHERE l.pool = 'timer' AND l.shard = s.shard OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM timers t WHERE - t.shard = - s.shard AND t.held_until IS NOT NULL AND t.hold_epoch < l.epoch OFFSET 0) t
) h ON true
