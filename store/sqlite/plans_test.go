package sqlite

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// statements are all that run in the store's life, by what they are for.
var statements = map[string]string{
	"workflow": workflowSQL, "run": runSQL, "runs of": runsOfSQL, "batch": batchSQL, "woken": wokenSQL, "list together": listTogetherSQL,
	"list before": listBeforeSQL, "leases due": leasesDueSQL, "leased tenants": leasedTenantsSQL, "history": historySQL, "history size": historySizeSQL, "effect": effectSQL, "record": recordSQL,
	"open effects": openEffectsSQL, "failures": failuresSQL, "event by key": eventByKeySQL, "whole event by key": wholeEventByKeySQL,
	"event by number": eventByNumberSQL, "whole event by number": wholeEventByNumberSQL, "live events": liveEventsSQL, "claimed event": claimedEventSQL,
	"kept count": keptCountSQL, "kept events": keptEventsSQL, "wait": waitSQL, "waits of": waitsOfSQL, "parked of": parkedOfSQL, "open waits": openWaitsSQL,
	"near waits": nearWaitsSQL, "near events": nearEventsSQL, "newest waits": newestWaitsSQL, "newest events": newestEventsSQL, "last events": lastEventsSQL,
	"wait by number": waitByNumberSQL, "effect names": effectNamesSQL,
	"list waits": listWaitsSQL, "list run's waits": listRunWaitsSQL, "list parked": listParkedSQL, "list stuck": listStuckSQL,
	"list quarantined": listQuarantinedSQL, "parked due": parkedDueSQL, "parked tenants": parkedTenantsSQL,
	"woken due": wokenDueSQL, "woken tenants": wokenTenantsSQL, "unmet": unmetSQL, "news of events": newsOfEventsSQL,
	"new waits": newWaitsSQL, "waits again": waitsAgainSQL,
	"insert answer": insertAnswerSQL, "update workflow": updateWorkflowSQL, "update run": updateRunSQL, "update event": updateEventSQL,
	"update corrupt event": updateCorruptEventSQL, "delete event keys": deleteEventKeysSQL, "update wait": updateWaitSQL,
	"update corrupt wait": updateCorruptWaitSQL, "delete wait": deleteWaitSQL, "delete wait key": deleteWaitKeySQL, "move mark": moveMarkSQL,
	"delete mark": deleteMarkSQL, "bump workflow": bumpWorkflowSQL, "consume event": consumeEventSQL,
	"retire event": retireEventSQL, "delete dead key": deleteDeadKeySQL, "ageing": ageingSQL, "expiring": expiringSQL, "overdue tenants": overdueTenantsSQL,
	"events of op": eventsOfOpSQL, "old letters": oldLettersSQL, "closed": closedSQL, "remnant of a run": remnantOfRunSQL, "remnant of a workflow": remnantOfFlowSQL,
	"left records": leftRecordsSQL, "left batches": leftBatchesSQL, "delete run": deleteRunSQL, "delete workflow": deleteWorkflowSQL,
	"delete record": deleteRecordSQL, "delete batch": deleteBatchSQL, "delete remnant": deleteRemnantSQL, "old letters' tenants": oldLetterTenantsSQL, "letters up": deadAll + upwards, "letters down": deadAll + downwards, "letters of type up": deadOfType + upwards,
	"letters of type down": deadOfType + downwards, "letters of reason up": deadOfReason + upwards, "letters of reason down": deadOfReason + downwards,
	"timer": timerSQL, "timers of": timersOfSQL, "list timers": listTimersSQL, "expired timers": expiredTimersSQL, "count timers": countTimersSQL,
	"last timer record": lastTimerRecordSQL, "outstanding timers": outstandingTimersSQL, "final failures": finalFailuresSQL, "ready": readySQL, "void": voidSQL,
	"ready tenants": readyTenantsSQL, "void tenants": voidTenantsSQL, "next ready": nextReadySQL, "next void": nextVoidSQL, "held timer": heldTimerSQL,
	"update corrupt timer": updateCorruptTimerSQL, "hold timer": holdTimerSQL, "delete timer": deleteTimerSQL, "heads": headsSQL, "tenant's heads": tenantHeadsSQL,
	"head shards": headShardsSQL, "shard leases": shardLeasesSQL, "shard lease": shardLeaseSQL, "update shard lease": updateShardLeaseSQL, "members": membersSQL,
	"delete member": deleteMemberSQL, "scan timers": scanTimersSQL, "scan shard leases": scanShardLeasesSQL,
	"push": pushSQL, "pushes of": pushesOfSQL, "lapsed pushes": lapsedPushesSQL, "due pushes": duePushesSQL, "push tenants": pushTenantsSQL, "next push": nextPushSQL,
	"count lapsed pushes": countLapsedPushesSQL, "count due pushes": countDuePushesSQL, "list parked pushes": listParkedPushSQL,
	"longest parked pushes": longestParkedPushSQL, "push log": pushLogSQL, "push logged": pushLoggedSQL, "push by token": pushByTokenSQL,
	"pushes of a claim": pushesOfClaimSQL, "push gates": pushGatesSQL, "gate's pushes": gatePushesSQL, "aged tenants": agedTenantsSQL,
	"aged pushes": agedPushesSQL, "old push log": oldPushLogSQL, "long push logs": longPushLogsSQL, "oldest push log": oldestPushLogSQL,
	"gone pushes": gonePushesSQL, "update push": updatePushSQL, "resettle push": resettlePushSQL, "update corrupt push": updateCorruptPushSQL,
	"delete push": deletePushSQL, "wake pushes": wakePushSQL, "delete a run's pushes": deleteRunPushesSQL, "delete a run's push log": deleteRunPushLogSQL,
	"delete push log": deletePushLogSQL, "scan pushes": scanPushesSQL, "scan push log": scanPushLogSQL,
	"passing letters": passingLettersSQL, "letters of key up": deadOfKey + upwards, "letters of key down": deadOfKey + downwards,
}

// walks go through a tenant's rows in the order of an index, as far as their limit; who counts them has none.
var walks = []string{"newest events", "newest waits", "count timers"}

// scanned is what statements go through as a whole: what they were given, and what they made.
var scanned = []string{"json_each", "CONSTANT ROW", "tenants", "queues", "shards", "SCAN few", "SCAN p VIRTUAL", "SCAN (subquery"}

// TestPlans: no statement looks at more rows than it is asked for (S8), lists of active and paused workflows not at closed ones (HI-27). SQLite plans without statistics here, so what is planned on an empty store is planned
// on a full one.
func TestPlans(t *testing.T) {
	b, err := Open(context.Background(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, sql := range statements {
		r := &reader{conn: b.conn}
		err := r.query(context.Background(), "EXPLAIN QUERY PLAN "+sql, func(c *columns) error {
			c.Bigint()
			c.Bigint()
			c.Bigint()
			step := c.Text()
			t.Logf("%s: %s", name, step)
			walks := slices.Contains(walks, name)
			if strings.HasPrefix(step, "SCAN") && !slices.ContainsFunc(scanned, func(what string) bool { return strings.Contains(step, what) }) ||
				strings.HasSuffix(step, "(tenant=?)") && !walks || strings.Contains(step, "TEMP B-TREE") && walks {
				t.Errorf("%s: %s", name, step)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// SW-35: live events are counted from one index in its order, which ends at the cap: nothing is sorted, and no row is looked up behind it.
func TestLiveDepthIsCountedFromItsIndex(t *testing.T) {
	b, err := Open(context.Background(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var plan []string
	err = (&reader{conn: b.conn}).query(context.Background(), "EXPLAIN QUERY PLAN "+liveDepthSQL, func(c *columns) error {
		c.Bigint()
		c.Bigint()
		c.Bigint()
		plan = append(plan, c.Text())
		return nil
	})
	steps := strings.Join(plan, "; ")
	if err != nil || !strings.Contains(steps, "USING COVERING INDEX event_keys_since") || strings.Contains(steps, "TEMP B-TREE") {
		t.Errorf("%s (%v)", steps, err)
	}
}
