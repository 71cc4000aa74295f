-- A page of workflows of a status that runs which have not ended have, likewise.
SELECT w.shard, w.tenant, w.workflow_id, w.head_seq, w.status
FROM unnest($1::integer[], $2::text[], $3::text[]) AS s (shard, tenant, workflow_id)
CROSS JOIN LATERAL (
    SELECT * FROM workflows w
    WHERE w.closed_at IS NULL AND w.status = $5 AND w.shard = s.shard
        AND (w.tenant COLLATE "POSIX", w.workflow_id) > (s.tenant, s.workflow_id) AND w.tenant COLLATE "POSIX" <= $4
    ORDER BY w.tenant COLLATE "POSIX", w.workflow_id
    LIMIT $6
) w
LIMIT $6
