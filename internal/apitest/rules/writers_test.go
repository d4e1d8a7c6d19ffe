package rules

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

// The refusals of the schema for volumes that several nodes write.
const (
	sharedRaw      = "sharing Shared is for raw disks (volumeMode Block, kind Attachments) whose reservations persist"
	writersShared  = "status.ownership.writers is for volumes with sharing Shared"
	newestIsFirst  = "of several writers the one with the newest epoch is the primary"
	writerOnce     = "a node is one writer, and only the primary has the newest epoch"
	writerHasEntry = "the node of a Preparing or Active writer has an entry, which is not removed"
	writerFence    = "a fence is requested for a writer's open epoch only"
	writerBegins   = "a writer's epoch begins Preparing, or Active where the record is mended"
	writerChart    = "a writer's epoch grows, and within one it goes from Preparing to Active, and from either to Released or Fenced"
	writerStays    = "a Preparing or Active writer stays"
)

// The refusals of the policies.
var (
	agentWriter   = denied("berth-agent-volumes", "the agent of n1 may change only its own entry of status.ownership.writers")
	agentOwnEpoch = denied("berth-agent-volumes", "the agent of n1 may make only its own epoch Active or Released, and ends a fence request by releasing it")
	personWriter  = denied("berth-volume-ownership", "a person changes nothing of a writer but its fence request, and of one writer at a time")
	ctlWriter     = denied("berth-volume-ownership", "a controller makes a writer Fenced, has it shut out, and mends the record of one, and nothing else")
	ctlOthers     = denied("berth-volume-ownership", "a new epoch changes no writer but its own")
)

// many is a disk that several nodes write.
func many(v *v1alpha1.Volume) {
	shared(v)
	v.Spec.Sharing, v.Spec.VolumeMode, v.Spec.FSType, v.Spec.Replication.Factor = v1alpha1.Shared, v1alpha1.Block, "", 1
	v.Spec.Replication.Attachments.MaxShares = 3
}

func manualMany(v *v1alpha1.Volume) {
	many(v)
	v.Spec.Replication.Failover = nil
}

// twoWrite has n1 write in epoch 5 and n2 in epoch 4.
var twoWrite = owns(func(o *v1alpha1.Ownership) {
	o.Writers = []v1alpha1.Writer{
		{Node: "n1", Boot: "boot-1", Phase: v1alpha1.PrimaryActive, Epoch: nth(5)},
		{Node: "n2", Boot: "boot-1", Phase: v1alpha1.PrimaryActive, Epoch: nth(4)},
	}
})

// theOtherWay has n2 write in epoch 5 and n1 in epoch 4.
var theOtherWay = owns(func(o *v1alpha1.Ownership) {
	o.Primary.Node = "n2"
	o.Writers = []v1alpha1.Writer{
		{Node: "n1", Boot: "boot-1", Phase: v1alpha1.PrimaryActive, Epoch: nth(4)},
		{Node: "n2", Boot: "boot-1", Phase: v1alpha1.PrimaryActive, Epoch: nth(5)},
	}
})

// writer edits one of them.
func writer(i int, edit func(w *v1alpha1.Writer)) change {
	return owns(func(o *v1alpha1.Ownership) { edit(&o.Writers[i]) })
}

func phased(i int, p v1alpha1.PrimaryPhase) change {
	return writer(i, func(w *v1alpha1.Writer) { w.Phase = p })
}

// joins is a new epoch of n2, or of another node, beside that of n1.
func joins(node string, number int64) change {
	return all(takenBy(node, number), owns(func(o *v1alpha1.Ownership) {
		own := v1alpha1.Writer{Node: node, Boot: "boot-2", Phase: v1alpha1.PrimaryPreparing, Epoch: nth(number)}
		for i := range o.Writers {
			if o.Writers[i].Node == node {
				o.Writers[i] = own
				return
			}
		}
		o.Writers = append(o.Writers, own)
	}))
}

func asksWriter(i int, executor string, number int64) change {
	return all(writer(i, func(w *v1alpha1.Writer) {
		w.FenceRequest = &v1alpha1.FenceRequest{Executor: executor, Epoch: nth(number)}
	}),
		owns(func(o *v1alpha1.Ownership) {
			o.Keys = append(o.Keys, v1alpha1.ReservationKey{Node: executor, Epoch: nth(number), Fence: true})
		}))
}

var left = all(twoWrite, phased(1, v1alpha1.PrimaryReleased))

var writersCases = map[string]ownershipCase{
	"a node begins to write beside another":      {volume: many, before: left, by: "n2", change: joins("n2", 6)},
	"a writer becomes active beside a newer one": {volume: many, before: all(twoWrite, phased(1, v1alpha1.PrimaryPreparing)), by: "n2", change: phased(1, v1alpha1.PrimaryActive)},
	"a writer releases beside a newer one":       {volume: many, before: twoWrite, by: "n2", change: all(phased(1, v1alpha1.PrimaryReleased), unstagedIn("n2", 4))},
	"a writer that is asked for releases":        {volume: many, before: all(twoWrite, asksWriter(1, "n1", 4)), by: "n2", change: writer(1, func(w *v1alpha1.Writer) { w.Phase, w.FenceRequest = v1alpha1.PrimaryReleased, nil })},
	"a writer mends the record of itself": {volume: many, before: left, by: "n2", change: writer(1, func(w *v1alpha1.Writer) {
		w.Phase, w.Epoch = v1alpha1.PrimaryActive, v1alpha1.Epoch{Number: 4, ID: "other"}
	}), refusal: writerChart},
	"a node forgets one that has ended and has no entry": {volume: many, before: all(left, theOtherWay, phased(0, v1alpha1.PrimaryReleased), owns(func(o *v1alpha1.Ownership) {
		o.Replicas = o.Replicas[1:]
	})), by: "n2", change: owns(func(o *v1alpha1.Ownership) { o.Writers = o.Writers[1:] })},
	"a node forgets one that has an entry":             {volume: many, before: left, by: "n1", change: owns(func(o *v1alpha1.Ownership) { o.Writers = o.Writers[:1] }), refusal: agentWriter},
	"a node says that another one has released":        {volume: many, before: twoWrite, by: "n1", change: phased(1, v1alpha1.PrimaryReleased), refusal: agentWriter},
	"a node begins an epoch for another":               {volume: many, before: left, by: "n1", change: joins("n2", 6), refusal: agentWriter},
	"a node fences itself":                             {volume: many, before: theOtherWay, by: "n1", change: phased(0, v1alpha1.PrimaryFenced), refusal: agentOwnEpoch},
	"a controller fences a writer":                     {volume: many, before: twoWrite, by: byController, change: phased(1, v1alpha1.PrimaryFenced)},
	"a controller has a writer shut out":               {volume: many, before: twoWrite, by: byController, change: asksWriter(1, "n1", 4)},
	"a controller has one of a manual volume shut out": {volume: manualMany, before: twoWrite, by: byController, change: asksWriter(1, "n1", 4), refusal: ctlWriter},
	"a controller releases a writer":                   {volume: many, before: twoWrite, by: byController, change: phased(1, v1alpha1.PrimaryReleased), refusal: ctlWriter},
	"a controller mends the record of a writer":        {volume: many, before: left, by: byController, change: joins("n2", 6)},
	"a controller changes another writer besides":      {volume: many, before: twoWrite, by: byController, change: all(phased(1, v1alpha1.PrimaryFenced), counted("n3", v1alpha1.OwnedSyncing), joins("n3", 6)), refusal: ctlOthers},
	"a controller forgets a writer that has ended":     {volume: many, before: all(left, counted("n2", v1alpha1.OwnedGone)), by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Writers, o.Replicas = o.Writers[:1], o.Replicas[:1] })},
	"a controller ends the attachment of a writer":     {volume: many, before: all(twoWrite, counted("n2", v1alpha1.OwnedRemoving)), by: byController, change: counted("n2", v1alpha1.OwnedGone), refusal: ctlEntry},
	"a person has a writer shut out":                   {volume: manualMany, before: twoWrite, by: byPerson, change: asksWriter(1, "n1", 4)},
	"a person asks the writer itself":                  {volume: manualMany, before: twoWrite, by: byPerson, change: asksWriter(1, "n2", 4), refusal: asksNoStandby},
	"a person has a writer shut out, and makes it active": {volume: manualMany, before: all(twoWrite, phased(1, v1alpha1.PrimaryPreparing)), by: byPerson,
		change: all(asksWriter(1, "n1", 4), phased(1, v1alpha1.PrimaryActive)), refusal: personWriter},
	"a person has two writers shut out at once": {volume: manualMany, before: twoWrite, by: byPerson, change: all(writer(0, func(w *v1alpha1.Writer) { w.FenceRequest = &v1alpha1.FenceRequest{Executor: "n2", Epoch: nth(5)} }), asksWriter(1, "n1", 4)), refusal: asksKey},
	"a person fences a writer":                  {volume: manualMany, before: twoWrite, by: byPerson, change: all(asksWriter(1, "n1", 4), writer(1, func(w *v1alpha1.Writer) { w.Phase, w.FenceRequest = v1alpha1.PrimaryFenced, nil })), refusal: asksNoStandby},
	// The rules of the schema bind every process.
	"a disk with one writer has several":   {volume: shared, by: byController, change: twoWrite, refusal: writersShared},
	"the primary is not among the writers": {volume: many, before: twoWrite, by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Writers = o.Writers[1:] }), refusal: newestIsFirst},
	"a node is a writer twice":             {volume: many, before: twoWrite, by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Writers = append(o.Writers, o.Writers[1]) }), refusal: writerOnce},
	"a writer without an entry": {volume: many, before: left, by: byController, change: owns(func(o *v1alpha1.Ownership) {
		o.Writers = append(o.Writers, v1alpha1.Writer{Node: "n3", Phase: v1alpha1.PrimaryActive, Epoch: nth(3)})
	}), refusal: writerHasEntry},
	"a writer's attachment is to go":                {volume: many, before: twoWrite, by: byController, change: counted("n2", v1alpha1.OwnedRemoving), refusal: writerHasEntry},
	"a fence of an epoch that is over is requested": {volume: many, before: left, by: byController, change: asksWriter(1, "n1", 4), refusal: writerFence},
	"a writer's epoch begins Released":              {volume: many, before: left, by: "n2", change: all(joins("n2", 6), phased(1, v1alpha1.PrimaryReleased), ended(v1alpha1.PrimaryReleased)), refusal: writerBegins},
	"a released writer is active again":             {volume: many, before: left, by: "n2", change: phased(1, v1alpha1.PrimaryActive), refusal: writerChart},
	"an active writer is forgotten":                 {volume: many, before: twoWrite, by: byController, change: owns(func(o *v1alpha1.Ownership) { o.Writers = o.Writers[:1] }), refusal: writerStays},
}

func TestTheRecordOfSeveralWritersIsWrittenOnlyAsTheRulesWriteIt(t *testing.T) {
	isWrittenSo(t, writersCases)
}
