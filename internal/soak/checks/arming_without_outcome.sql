-- I13: every arming comes to its end: it fires, or is cancelled, replaced, answered, withdrawn, or over with its run. Nothing here is armed for long.
SELECT format('%s/%s %s %s of seq %s, due %s ago', tenant, run_id, class, name, seq, rdv_now() - due)
FROM soak.armings WHERE ended IS NULL
