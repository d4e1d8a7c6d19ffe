// Package ownership decides which node may write a volume, which copies count, and
// what happens to the others. docs/ownership.md explains the protocol.
//
// It is a pure core: values in, one Action out, with its reason. Lists of rules
// (Chain) answer "what next?"; the first rule that decides wins:
//
//	agent:       Node.Next    StageRules, UnstageRules, TendRules   (NodeFacts)
//	controller:               OverseeRules                         (ControllerFacts)
//	receiver:    Receive      before the first byte of a stream
//	peer:        Confirm      before another destroys its copy
//	watchdog:    MustStop     before every renewal of the lease
//
// The caller gathers the facts, asks, carries the one action out, and asks again.
// There is no state between two questions, so a crash needs no recovery code and a
// repeated question is harmless. Verb lists the effects that an Action asks of the
// caller. NodeFacts and ControllerFacts say in which order the caller gathers the
// facts.
//
// One rule set serves shared disks and snapshot replicas. Traits holds the
// differences. A Volume is never changed in place: rules return the next value, to
// be written by compare-and-swap.
package ownership
