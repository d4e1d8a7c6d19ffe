// Package san is the storage target of a lab: iSCSI logical units that all nodes reach at
// one address ([network.SANAddress]).
//
// There are two kinds. [TGT] is tgtd, a process on this machine in the lab's network
// namespace. It starts in a moment. It keeps reservations in memory, so a restart forgets
// them. It refuses registrations that ask to persist (APTPL), as all do that are made with the
// kernel's IOC_PR_REGISTER: initiators must send the command themselves (SG_IO, sg_persist).
// It does not implement PREEMPT AND ABORT. [LIO] is the kernel's target in a guest
// of its own. It implements PREEMPT AND ABORT. Its reservations survive a restart and a
// loss of power if [Settings.Persist] is set and the initiator asked for it.
//
// With both kinds the content of a logical unit is a raw file on this machine, so that a
// program here can read what the target stored ([SAN.LUNs]).
//
// san.json is written before a logical unit is offered, so that [SAN.Down] finds all that an
// interrupted command made.
package san
