// Package engine keeps a backend's facts about its units of storage, and changes the units. A
// unit is a volume group, a zpool or a disk, which the backend reads and changes as a whole.
//
// # Read, plan, run, learn
//
// A backend asks its tools once, and keeps the answer in a Book. A Change meets a request:
//
//  1. Plan. The backend decides, by the facts in the Book, which steps are left to do. If there
//     is none, the request is met.
//  2. Run. The engine takes the steps one after the other.
//  3. Learn. The engine puts the effect of each step into the Book, so nothing is read again.
//
// If a plan or a step fails, the engine has the unit read anew and plans once more. So the
// facts decide what a failure means, and never the text of a message: the change may have been
// made all the same, may be impossible now, or may need another step first. After a crash the
// engine completes a half-made change in the same way: from the facts.
//
// # Order
//
// IDLocks orders the operations of each volume and snapshot. UnitLocks orders the changes of a
// unit and the readings of it. A change takes the locks of ids before the lock of a unit.
//
// The engine carries a change that has begun to its end, even if the caller gives up.
package engine
