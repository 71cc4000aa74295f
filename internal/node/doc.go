// Package node puts a process of the plane together: store, NATS, doors, workers, health. Every main is a Config and a call of [Run]; they differ in the
// roles they switch on.
//
// Start builds from the bottom up; Stop takes down in reverse, which is the order of messaging.md section 5: readiness off, passes, consumers, doors,
// pending publishes, connections, embedded server, store, telemetry.
package node
