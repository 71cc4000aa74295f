// Package fault makes a storage engine fail on command, so that tests can break the store at the moments that matter and look at what is left: before
// a commit, after a commit whose answer is lost, or at any single call inside a transaction. It is for the tests of the plane and of its users.
//
// Wrap a backend, make a store of it, and arm failures by the name of the verb's transaction ("append", "offer_batch", ...; "" is any):
//
//	faults := fault.Wrap(memory.Open(clock.System, 64))
//	s, err := engine.New(faults, engine.Options{})
//	faults.Arm(fault.Failure{Verb: "append", Point: fault.AfterCommit})
//
// A failure strikes once unless it says otherwise, and stays armed until it has. What is not struck is forwarded untouched. To break a verb at every
// step, count up until nothing is struck any more:
//
//	for call := 1; ; call++ {
//		f := faults.Arm(fault.Failure{Verb: "conclude", Point: fault.AtCall, Call: call})
//		... run the verb: it fails and has changed nothing, or
//		if f.Struck() == 0 { f.Disarm(); break } // it makes fewer calls than that
//	}
//
// The engine makes a transaction anew when a backend answers ErrStale or ErrRetry, so a failure with such an Err shows that a verb starts over cleanly.
package fault
