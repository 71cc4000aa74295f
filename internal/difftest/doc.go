// Package difftest asks the stores the same questions and fails where their answers differ.
//
// Memory, SQLite and PostgreSQL keep one contract (package store) under one engine. A [World] holds one empty store of each, their clocks at the same
// instant, and makes [Step]s: a step is one verb with its arguments, as data. Every store is asked; outcomes, errors with their code, message and details,
// the order of lists, and at the end everything that can be read must be equal. What a store chooses for itself is compared by its role: numbers of events
// and waits by the order they give, take tokens and cursors by being there, ids it mints by when it minted them.
//
// Nothing here says which answer is right: the batteries of store/storetest do. Here is what nobody thought of: rapid draws the steps (draw.go), malformed
// and repeated ones, and failures armed alike on every store ([Arm]).
//
// A sequence that tells the stores apart is made smaller ([Shrink]) and printed as Go, ready to become a named one (named_test.go):
//
//	Replay(
//		t, open(t),
//		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
//		ReadRunChain{Tenant: "a", Workflow: "w1", After: 9223372036854775807},
//	)
//
// What runs at once cannot be compared step by step, since each store chooses its own order. [Check] asks of one store instead whether there is a legal
// order at all (linear.go).
package difftest
