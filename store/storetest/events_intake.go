package storetest

var eventsIntake = []Case{}
