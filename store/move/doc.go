// Package move copies everything a plane holds from one store to another: from the embedded one to PostgreSQL when one process is no longer enough, and back.
//
// The source is only read, kind by kind and in the order of keys ([backend.Source]). What was read is inserted in the target in transactions of some hundred
// rows, each together with a mark of how far the copy got ([backend.Target]). So a copy that was killed, at any point, goes on exactly where it was when
// the same copy is asked for again, and as long as the mark stands the target opens for nothing else. Only an empty target takes a first row.
//
// The end is the proof. All of the source is read again and all of the target, and count and sum of every kind of row must be those of what was copied: where
// the source differs it changed meanwhile, where the target does, somebody else wrote to it. Sums do not depend on order and cover every column but versions,
// which begin at 1 again. Whatever changed in the source before its second reading began is noticed, so the copy is one state of the source, however long it
// took. Leases of shards are copied free and with epochs 2^32 later, so that no pod of the source passes a fence of the target, and members of pools are left
// behind (shards.md section 5). Then the target's numbers are raised above all that the source gave (I9), and the mark goes.
//
// What is not promised: that nobody works on the source after its second reading. Stop what uses it, for good.
package move
