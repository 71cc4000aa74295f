-- Records of a history and their bytes; nothing stored out of line is fetched.
SELECT count(*), coalesce(sum(octet_length(h.data) + coalesce(octet_length(h.payload), 0)), 0)::bigint
FROM history h
WHERE h.tenant = $1 AND h.workflow_id = $2
