package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Ownership is the record of a volume with several replicas: which node may write, and which
// replicas count. internal/ownership decides every value of it. It is written whole, by a PUT of
// the status with the resourceVersion that was read, so that one of two writers finds out that it
// lost. The API's rules here say what may follow what; admission policies say which process may
// write it.
//
// A restored backup makes the record older than what nodes know. Mending it begins a later epoch,
// whatever was open, so that no rule here forbids it.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="dyn(self.lineage[size(self.lineage) - 1].epoch) == dyn(self.epoch)",message="the last epoch of the lineage is the epoch"
// +kubebuilder:validation:XValidation:rule="self.primary.phase in ['Released','Fenced'] || has(self.primary.node) && has(self.replicas) && self.replicas.exists(r, r.node == self.primary.node)",message="the node of a Preparing or Active primary has an entry"
// +kubebuilder:validation:XValidation:rule="self.primary.phase != 'Fenced' || !self.clean",message="a Fenced primary did not unmount cleanly"
// +kubebuilder:validation:XValidation:rule="!has(self.fenceRequest) || dyn(self.fenceRequest.epoch) == dyn(self.epoch) && self.primary.phase in ['Preparing','Active']",message="a fence is requested for the open epoch only"
// +kubebuilder:validation:XValidation:rule="self.epoch.number >= oldSelf.epoch.number",message="epoch.number cannot decrease"
// +kubebuilder:validation:XValidation:rule="(self.epoch.number == oldSelf.epoch.number) == (self.epoch.id == oldSelf.epoch.id)",message="epoch.id changes with epoch.number, and only with it"
// +kubebuilder:validation:XValidation:rule="self.epoch == oldSelf.epoch || self.primary.phase in ['Preparing','Active']",message="a new epoch begins Preparing, or Active where the record is mended"
// +kubebuilder:validation:XValidation:rule="self.epoch == oldSelf.epoch || (has(self.lineage[size(self.lineage) - 1].from) ? [dyn(self.lineage[size(self.lineage) - 1].from)] : []) == (has(self.recoveryPoint) ? [dyn(self.recoveryPoint)] : [])",message="a new epoch begins at the recovery point"
// +kubebuilder:validation:XValidation:rule="self.epoch == oldSelf.epoch || !has(self.recoveryPoint) || self.lineage.exists(b, dyn(b.epoch) == dyn(oldSelf.epoch))",message="a new epoch knows the epoch before it"
// +kubebuilder:validation:XValidation:rule="self.epoch != oldSelf.epoch || self.lineage == oldSelf.lineage && has(self.primary.node) == has(oldSelf.primary.node) && (!has(self.primary.node) || self.primary.node == oldSelf.primary.node) && has(self.primary.boot) == has(oldSelf.primary.boot) && (!has(self.primary.boot) || self.primary.boot == oldSelf.primary.boot)",message="within an epoch the lineage and the primary's node and boot stay"
// +kubebuilder:validation:XValidation:rule="self.epoch != oldSelf.epoch || self.primary.phase == oldSelf.primary.phase || oldSelf.primary.phase == 'Preparing' || oldSelf.primary.phase == 'Active' && self.primary.phase in ['Released','Fenced']",message="within an epoch the primary goes from Preparing to Active, and from either to Released or Fenced"
// +kubebuilder:validation:XValidation:rule="self.epoch != oldSelf.epoch || (has(self.recoveryPoint) ? [self.recoveryPoint] : []) == (has(oldSelf.recoveryPoint) ? [oldSelf.recoveryPoint] : []) || self.primary.phase != oldSelf.primary.phase && self.primary.phase != 'Active' || self.primary.phase in ['Released','Fenced'] && has(self.recoveryPoint) && has(oldSelf.recoveryPoint) && self.recoveryPoint.seq < oldSelf.recoveryPoint.seq && self.losses != (has(oldSelf.losses) ? oldSelf.losses : []) && dyn(self.losses[size(self.losses) - 1].kept) == dyn(self.recoveryPoint)",message="the recovery point is set by a release or a fence, and lowered later only with a recorded loss"
// +kubebuilder:validation:XValidation:rule="self.epoch != oldSelf.epoch || (has(self.losses) ? self.losses : []) == (has(oldSelf.losses) ? oldSelf.losses : []) || self.primary.phase == 'Fenced' && oldSelf.primary.phase != 'Fenced' || (has(self.recoveryPoint) ? [self.recoveryPoint] : []) != (has(oldSelf.recoveryPoint) ? [oldSelf.recoveryPoint] : []) && self.primary.phase == oldSelf.primary.phase",message="within an epoch a loss is recorded by a fence, or where the recovery point is lowered"
// +kubebuilder:validation:XValidation:rule="self.epoch != oldSelf.epoch || self.primary.phase != 'Fenced' || oldSelf.primary.phase == 'Fenced' || !has(self.recoveryPoint) || size((has(self.losses) ? self.losses : [])) > 0 && dyn(self.losses[size(self.losses) - 1].kept) == dyn(self.recoveryPoint) && dyn(self.losses[size(self.losses) - 1].epoch) == dyn(self.epoch)",message="a fence records the loss"
// +kubebuilder:validation:XValidation:rule="self.epoch != oldSelf.epoch || size((has(oldSelf.losses) ? oldSelf.losses : [])) == 8 && size((has(self.losses) ? self.losses : [])) == 8 || (has(oldSelf.losses) ? oldSelf.losses : []).all(l, l in (has(self.losses) ? self.losses : []))",message="a recorded loss stays"
// +kubebuilder:validation:XValidation:rule="!self.clean || oldSelf.clean || self.epoch == oldSelf.epoch && self.primary.phase == 'Released' && oldSelf.primary.phase != 'Released'",message="only a release makes the volume clean"
// +kubebuilder:validation:XValidation:rule="size((has(self.keys) ? self.keys : [])) <= size((has(oldSelf.keys) ? oldSelf.keys : [])) + 1 && (has(oldSelf.keys) ? oldSelf.keys : []).all(k, size(oldSelf.keys) == 8 || k in (has(self.keys) ? self.keys : []))",message="keys are added one at a time, and only the oldest of eight is forgotten"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.replicas) || oldSelf.replicas.all(o, o.state == 'Gone' || has(self.replicas) && self.replicas.exists(n, n.node == o.node))",message="an entry of status.ownership.replicas leaves only from state Gone"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas.all(n, n.state in ['Reserved','Syncing'] || has(oldSelf.replicas) && oldSelf.replicas.exists(o, o.node == n.node))",message="an entry of status.ownership.replicas begins Reserved or Syncing"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(oldSelf.replicas) || self.replicas.all(n, oldSelf.replicas.all(o, o.node != n.node || o.state == n.state || (o.state + '-' + n.state) in ['Reserved-Syncing','Reserved-Ready','Reserved-Failed','Reserved-Removing','Syncing-Ready','Syncing-Lagging','Syncing-Diverged','Syncing-Failed','Syncing-Lost','Syncing-Removing','Ready-Lagging','Ready-Diverged','Ready-Syncing','Ready-Lost','Ready-Failed','Ready-Removing','Lagging-Ready','Lagging-Diverged','Lagging-Syncing','Lagging-Lost','Lagging-Failed','Lagging-Removing','Diverged-Syncing','Diverged-Ready','Diverged-Lagging','Diverged-Lost','Diverged-Removing','Failed-Syncing','Failed-Removing','Lost-Syncing','Lost-Ready','Lost-Lagging','Lost-Removing','Removing-Syncing','Removing-Gone']))",message="a replica goes only along the chart of its states"
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || has(self.primary.node) && self.writers.exists(w, w.node == self.primary.node && dyn(w.epoch) == dyn(self.epoch) && w.phase == self.primary.phase && has(w.boot) == has(self.primary.boot) && (!has(w.boot) || w.boot == self.primary.boot))",message="of several writers the one with the newest epoch is the primary"
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || self.writers.all(w, self.writers.exists_one(o, o.node == w.node) && (w.node == self.primary.node || w.epoch.number < self.epoch.number))",message="a node is one writer, and only the primary has the newest epoch"
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || self.writers.all(w, w.phase in ['Released','Fenced'] || has(self.replicas) && self.replicas.exists(r, r.node == w.node && (r.state != 'Removing' || has(oldSelf.replicas) && oldSelf.replicas.exists(o, o.node == r.node && o.state == 'Removing'))))",message="the node of a Preparing or Active writer has an entry, which is not removed"
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || self.writers.all(w, !has(w.fenceRequest) || dyn(w.fenceRequest.epoch) == dyn(w.epoch) && w.phase in ['Preparing','Active'])",message="a fence is requested for a writer's open epoch only"
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || self.writers.all(n, has(oldSelf.writers) && oldSelf.writers.exists(o, o.node == n.node && dyn(o.epoch) == dyn(n.epoch)) || n.phase in ['Preparing','Active'])",message="a writer's epoch begins Preparing, or Active where the record is mended"
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || !has(oldSelf.writers) || self.writers.all(n, oldSelf.writers.all(o, o.node != n.node || n.epoch.number > o.epoch.number || dyn(n.epoch) == dyn(o.epoch) && has(n.boot) == has(o.boot) && (!has(n.boot) || n.boot == o.boot) && (n.phase == o.phase || o.phase == 'Preparing' || o.phase == 'Active' && n.phase in ['Released','Fenced'])))",message="a writer's epoch grows, and within one it goes from Preparing to Active, and from either to Released or Fenced"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.writers) || oldSelf.writers.all(o, o.phase in ['Released','Fenced'] || has(self.writers) && self.writers.exists(n, n.node == o.node))",message="a Preparing or Active writer stays"
// +kubebuilder:validation:XValidation:rule="self.primary.phase in ['Released','Fenced'] || !has(self.replicas) || self.replicas.all(n, n.state != 'Removing' || !has(self.primary.node) || n.node != self.primary.node || has(oldSelf.replicas) && oldSelf.replicas.exists(o, o.node == n.node && o.state == 'Removing'))",message="the replica of the owner is not removed"
type Ownership struct {
	// epoch is the newest epoch opened.
	// +required
	Epoch Epoch `json:"epoch"`

	// primary is the node that may write, or was the last that might.
	// +required
	Primary Primary `json:"primary"`

	// recoveryPoint is where the next epoch begins. Attachments of a shared disk have none.
	// +optional
	RecoveryPoint *Point `json:"recoveryPoint,omitempty"`

	// clean says that the previous writer flushed everything and unmounted. Otherwise the next
	// mount begins with a consistency check.
	// +required
	Clean bool `json:"clean"`

	// lineage lists the epochs in the order in which they were opened, the current one last.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Lineage []Branch `json:"lineage"`

	// losses are the acknowledged writes that were given up, newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Losses []Loss `json:"losses,omitempty"`

	// keys are the reservation keys of a shared disk that were issued last, newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Keys []ReservationKey `json:"keys,omitempty"`

	// fenceRequest asks a standby to take the reservation of a shared disk from the primary. Where several nodes
	// write, each of writers has its own.
	// +optional
	FenceRequest *FenceRequest `json:"fenceRequest,omitempty"`

	// writers are the nodes that have opened an epoch of a volume that several nodes write, in order of node
	// names. The one with the newest epoch is the primary, too. A volume with sharing Exclusive has none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=9
	Writers []Writer `json:"writers,omitempty"`

	// expireAt is when the attachments of an unused shared disk go.
	// +optional
	ExpireAt *metav1.Time `json:"expireAt,omitempty"`

	// approved is the exact snapshot to which an administrator agreed to fall back. It is the
	// one field that a person writes.
	// +optional
	Approved *Point `json:"approved,omitempty"`

	// replicas are the replicas that the volume has, in order of node names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(o, o.node == r.node))",message="a node has one entry"
	Replicas []OwnedReplica `json:"replicas,omitempty"`
}

// Owners are the nodes that have an open epoch: they write, or are about to. A volume without a record has none.
func (o *Ownership) Owners() (nodes []string) {
	if o == nil {
		return nil
	}
	if len(o.Writers) == 0 && o.Primary.Phase.Open() {
		return []string{o.Primary.Node}
	}
	for i := range o.Writers { // the primary is one of them
		if o.Writers[i].Phase.Open() {
			nodes = append(nodes, o.Writers[i].Node)
		}
	}
	return nodes
}

// Epoch identifies one uninterrupted right to write. The id is random: an API server restored from
// an old backup may reach the same number again, and must not pass for the same ownership.
type Epoch struct {
	// number grows with each ownership. It grows by more than one where a node has promised a
	// higher number: the next epoch must be above that. The keys of shared disks have room for
	// 30 bits of it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741823
	Number int64 `json:"number"`
	// id is random, and compared for equality only.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
}

// Primary is the replica that may write.
type Primary struct {
	// node of the primary; absent until a node has opened an epoch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// boot is the boot id of the node when it took over. A proof about an earlier boot says
	// nothing about this one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Boot string `json:"boot,omitempty"`
	// phase of its ownership.
	// +required
	Phase PrimaryPhase `json:"phase"`
}

// Writer is a node's right to write a volume that several nodes write.
type Writer struct {
	// node of the writer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// boot is the boot id of the node when it opened the epoch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Boot string `json:"boot,omitempty"`
	// phase of its epoch.
	// +required
	Phase PrimaryPhase `json:"phase"`
	// epoch is the newest that the node opened.
	// +required
	Epoch Epoch `json:"epoch"`
	// fenceRequest asks another node to take this one's registration at the disk away.
	// +optional
	FenceRequest *FenceRequest `json:"fenceRequest,omitempty"`
}

// PrimaryPhase is how far an ownership has come.
//
// +kubebuilder:validation:Enum=Released;Preparing;Active;Fenced
type PrimaryPhase string

// The phases of an ownership.
const (
	// PrimaryReleased: no node may write; the recovery point is the final snapshot.
	PrimaryReleased PrimaryPhase = "Released"
	// PrimaryPreparing: the node has opened the epoch and brings its replica to the recovery point.
	PrimaryPreparing PrimaryPhase = "Preparing"
	// PrimaryActive: the node may write.
	PrimaryActive PrimaryPhase = "Active"
	// PrimaryFenced: the writer of the epoch can provably not write any more.
	PrimaryFenced PrimaryPhase = "Fenced"
)

// Open says whether an epoch in this phase has an owner.
func (p PrimaryPhase) Open() bool { return p == PrimaryPreparing || p == PrimaryActive }

// Point is the identity of a snapshot: the epoch that wrote it and a sequence number.
type Point struct {
	// epoch that wrote the snapshot.
	// +required
	Epoch Epoch `json:"epoch"`
	// seq grows along every path of epochs.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Seq int64 `json:"seq"`
}

// Branch says where an epoch began.
type Branch struct {
	// epoch that began.
	// +required
	Epoch Epoch `json:"epoch"`
	// from is where it began; absent for the first epoch and for shared disks.
	// +optional
	From *Point `json:"from,omitempty"`
}

// Loss records writes that were acknowledged and given up by a failover.
type Loss struct {
	// epoch that was cut off.
	// +required
	Epoch Epoch `json:"epoch"`
	// kept is its last point that survives.
	// +required
	Kept Point `json:"kept"`
	// known is the newest point that was known to exist.
	// +optional
	Known *Point `json:"known,omitempty"`
}

// ReservationKey is a key that a node has at a shared disk.
type ReservationKey struct {
	// node that uses the key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// epoch that the key serves.
	// +required
	Epoch Epoch `json:"epoch"`
	// fence says that the key shuts the writer of the epoch out.
	// +optional
	Fence bool `json:"fence,omitempty"`
}

// FenceRequest names a standby that shall shut out the writer of an epoch.
type FenceRequest struct {
	// executor is the node of the standby.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Executor string `json:"executor"`
	// epoch whose writer is to be shut out.
	// +required
	Epoch Epoch `json:"epoch"`
}

// OwnedReplica is one replica as the rules of ownership count it. What its node says about room
// and device is in status.replicas.
type OwnedReplica struct {
	// node of the replica.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// state of the replica.
	// +required
	State OwnedState `json:"state"`
	// point is the newest snapshot that the node reported.
	// +optional
	Point *Point `json:"point,omitempty"`
	// unstaged is the newest epoch that the node promises never to write into again.
	// +optional
	Unstaged *Epoch `json:"unstaged,omitempty"`
	// fenced is the epoch whose writer the node has shut out at the device.
	// +optional
	Fenced *Epoch `json:"fenced,omitempty"`
	// tries counts the failures to attach since the last success.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Tries int32 `json:"tries,omitempty"`
	// retryAt is when the node tries again.
	// +optional
	RetryAt *metav1.Time `json:"retryAt,omitempty"`
}

// OwnedState is the state of a replica in the chart of internal/ownership.
//
// +kubebuilder:validation:Enum=Reserved;Syncing;Ready;Lagging;Diverged;Failed;Lost;Removing;Gone
type OwnedState string

// The states of a replica.
const (
	// OwnedReserved: room is promised, nothing is there.
	OwnedReserved OwnedState = "Reserved"
	// OwnedSyncing: the node fills or repairs its copy, or attaches.
	OwnedSyncing OwnedState = "Syncing"
	// OwnedReady: may become primary.
	OwnedReady OwnedState = "Ready"
	// OwnedLagging: in the lineage, but more than one snapshot behind.
	OwnedLagging OwnedState = "Lagging"
	// OwnedDiverged: holds data outside the lineage, which is put aside first.
	OwnedDiverged OwnedState = "Diverged"
	// OwnedFailed: the provisioner reported an error.
	OwnedFailed OwnedState = "Failed"
	// OwnedLost: the node has no copy where one was recorded.
	OwnedLost OwnedState = "Lost"
	// OwnedRemoving: the replica may go, and counts no more.
	OwnedRemoving OwnedState = "Removing"
	// OwnedGone: nothing of the replica is on the node.
	OwnedGone OwnedState = "Gone"
)
