package storetest

// roles are the files of the battery.
var roles = []role{
	{"events_intake", eventsIntake},
	{"events_waits", eventsWaits},
	{"events_meeting", eventsMeeting},
	{"events_targeted", eventsTargeted},
	{"events_parking", eventsParking},
	{"events_attempts", eventsAttempts},
	{"events_retiring", eventsRetiring},
	{"events_erasure", eventsErasure},
	{"meeting_model", meetingModel},
	{"history", histories},
	{"history_order", historyOrder},
	{"history_lists", historyLists},
	{"runs_writing", runsWriting},
	{"runs_repeats", runsRepeats},
	{"runs_starting", runsStarting},
	{"runs_leases", runsLeases},
	{"runs_driving", runsDriving},
	{"runs_suspending", runsSuspending},
	{"runs_reclaiming", runsReclaiming},
	{"runs_ends", runsEnds},
	{"runs_continuing", runsContinuing},
	{"runs_pausing", runsPausing},
	{"runs_cancelling", runsCancelling},
	{"runs_model", runsModel},
}
