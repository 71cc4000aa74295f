-- A page of workflows by shard: in each, the range from a position up to the last workflow of a tenant. Shards come in their order.
SELECT w.shard, w.tenant, w.workflow_id, w.head_seq, w.status
FROM unnest($1::integer[], $2::text[], $3::text[]) AS s (shard, tenant, workflow_id)
CROSS JOIN LATERAL (
    SELECT * FROM workflows w
    WHERE w.shard = s.shard AND (w.tenant COLLATE "POSIX", w.workflow_id) > (s.tenant, s.workflow_id) AND w.tenant COLLATE "POSIX" <= $4
        AND ($5 = '' OR w.status = $5)
    ORDER BY w.tenant COLLATE "POSIX", w.workflow_id
    LIMIT $6
) w
LIMIT $6
