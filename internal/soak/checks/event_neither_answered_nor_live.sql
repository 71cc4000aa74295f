-- Every event is answered, live, or dead for a reason that this load gives: its wait was withdrawn, its addressee ended.
SELECT format('%s/%s/%s %s %s %s', tenant, source, id, state, dead_reason, dead_detail)
FROM events
WHERE state NOT IN ('consumed', 'live') AND NOT (state = 'dead' AND target <> '' AND dead_reason IN ('addressee_concluded', 'wait_withdrawn'))
