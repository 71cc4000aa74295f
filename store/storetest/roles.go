package storetest

// roles are the files of the battery.
var roles = []role{
	{"events_intake", eventsIntake},
	{"history", histories},
}
