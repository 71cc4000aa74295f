package rendezvous

// Limits of design section 6 and history.md section 1. Sizes are bytes unless said otherwise.
const (
	MaxID             = 512       // workflow, run, effect and event ids, sources and types
	MaxToken          = 64        // tenants and queues
	MaxKeys           = 16        // keys of an event or a wait
	MaxKeyPart        = 256       // namespace and value of a key, each
	MaxContentType    = 256       // content types
	MaxPayload        = 1 << 20   // an event's or a record's payload
	MaxRecordData     = 64 << 10  // a record's own fields
	MaxBatchID        = 128       // batch and acquire ids
	MaxReason         = 512       // reasons, details and other free text of operators and runs
	MaxTrace          = 512       // a traceparent or tracestate that is kept; longer ones are dropped
	MaxBatchItems     = 500       // items of a [Q] batch and of events.put
	MaxBatchBytes     = 8 << 20   // bytes of a group commit
	MaxAppendRecords  = 500       // records of an append
	MaxAppendBytes    = 16 << 20  // their payloads and data together
	MaxWaitsPerRun    = 1000      // rows of waits
	MaxTimersPerRun   = 1000      // live author timers of a run
	MaxKeptPerRun     = 1000      // live events targeted at one run
	MaxExpiryDays     = 30        // how far ahead an event's own expiry may lie
	MaxFullHistory    = 50_000    // records of ReadHistory
	MaxFullBytes      = 64 << 20  // bytes of ReadHistory
	MaxHistoryPage    = 10_000    // records of ReadHistoryFrom; DefaultHistory when none is asked
	DefaultHistory    = 500       // page of ReadHistoryFrom when limit is 0
	MaxHistoryBytes   = 4 << 20   // bytes of a history page; one record always fits
	MaxList           = 1000      // rows of a list
	DefaultList       = 100       // rows of a list when limit is 0
	MaxCollect        = 100       // answers one Collect or Suspend records
	MaxCollectBytes   = 16 << 20  // their payloads
	QuarantineAfter   = 16        // failed attempts of a parked wait
	UndeliverableFrom = 16        // failed offers of an event
	StuckReclaims     = 16        // reclaims in a row after which a run is reported as stuck
	DefaultShards     = 64        // slices of workflows
	MaxSeq            = 1<<63 - 1 // the highest seq of a workflow
)

// PageLimit resolves a page's limit: 0 is def, negative is invalid, above max is too_large (HI-46).
func PageLimit(limit, def, most int) (int, error) {
	switch {
	case limit < 0:
		return 0, InvalidField("limit", "%d is negative; give 1..%d, or 0 for %d", limit, most, def)
	case limit == 0:
		return def, nil
	case limit > most:
		return 0, OverLimit("limit", most, limit)
	}
	return limit, nil
}
