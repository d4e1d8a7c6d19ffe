// Package notices tells people of orphans, by events of the StorageNode that reports
// them: when one is first seen, and a day before its deadline. It also tells what Berth
// did to a pool because a class asks for it, what keeps it from that, and of thin pools
// that fill up.
//
// What is to be told is a function of the report and the time, and the name of an event
// is one of what it tells. So nothing has to be remembered: whoever tells it again, a
// second controller or one that has started anew, finds the event there.
package notices
