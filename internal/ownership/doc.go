// Package ownership decides who may write a volume, which copies count, and what
// becomes of the others. docs/ownership.md explains the protocol.
//
// It is a pure core: values in, one Action out, with its reason. Lists of rules
// (Chain) answer "what next?"; the first that decides, decides:
//
//	agent:       Node.Next    StageRules, UnstageRules, TendRules   (NodeFacts)
//	controller:               OverseeRules                         (ControllerFacts)
//	receiver:    Receive      before the first byte of a stream
//	peer:        Confirm      before another destroys its copy
//	watchdog:    MustStop     before every renewal of the lease
//
// The caller gathers the facts, asks, carries the one action out, and asks again.
// There is no state between two questions, so a crash needs no recovery code and
// a repeated question is harmless. What an Action needs from the outside world is
// listed at Verb; in which order facts are gathered, at NodeFacts and
// ControllerFacts.
//
// One rule set serves shared disks and snapshot replicas. What differs is in
// Traits. A Volume is never changed in place: rules return the next value, to be
// written by compare-and-swap.
package ownership
