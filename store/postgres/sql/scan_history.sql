-- The walk over all histories: keys and sizes of records, by primary key. Sizes are known without fetching what is stored out of line.
SELECT h.tenant, h.workflow_id, '', h.seq, (octet_length(h.data) + coalesce(octet_length(h.payload), 0))::bigint, h.closes
FROM history h
WHERE (h.tenant, h.workflow_id, h.seq) > ($1::text, $2::text, $3::bigint)
ORDER BY h.tenant, h.workflow_id, h.seq
LIMIT $4::bigint
