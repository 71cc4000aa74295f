package storetest

// roles are the files of the battery.
var roles = []role{
	{"events_intake", eventsIntake},
	{"events_waits", eventsWaits},
	{"events_meeting", eventsMeeting},
	{"history", histories},
	{"history_order", historyOrder},
	{"history_lists", historyLists},
}
