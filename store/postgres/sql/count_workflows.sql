-- How many of a tenant's workflows pass a filter; counting stops at a maximum.
SELECT count(*)
FROM (
    SELECT FROM workflows w
    WHERE w.tenant = $1
        AND (cardinality($3::text[]) = 0 OR w.type = ANY ($3))
        AND (cardinality($4::text[]) = 0 OR w.status = ANY ($4))
        AND (cardinality($5::text[]) = 0 OR w.queue = ANY ($5))
        AND starts_with(w.workflow_id, $6)
    LIMIT nullif($2::bigint, 0)
) w
