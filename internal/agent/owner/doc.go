// Package owner is the agent's Owner of volumes that have epochs: the shell that asks the rules of
// package ownership what comes next, and carries their actions out on this node. What a replica is,
// an attachment of a shared disk or a copy in the node's pools, is its Medium.
//
// Each decision is made anew: under the volume's lock the Owner gathers what the node keeps and has
// mounted, then reads the record, uncached, then asks the peers, the disk and the guard; it asks the
// rules and carries one action out before it lets the lock go. There is no state between two
// decisions but hints (when a kubelet asked last, which attach is under way), so a crash needs no
// recovery: the next decision goes on. docs/ownership.md, "What the shell must do", has the promises.
//
//	Take, Give     the kubelet's calls, through staging.Owner: decide until the rules are done
//	Holds          asks the node alone
//	Tend           upkeep that no kubelet asks for; Run calls it at the start, and when it is poked
//	Vouch          gives the guard this agent's word, once every epoch is closed
//	Peer           answers another node, without the volume's lock
//
// All effects are in the interfaces World, shared.Disks and Pools. Attaching and detaching go on without
// the volume's lock, one at a time for a volume; until such a step has ended the rules are told that an
// attach is under way, which lets nothing begin that a detach could hit. So do streams of copies: the pool
// asks the rules again when a stream has come to its end.
package owner
