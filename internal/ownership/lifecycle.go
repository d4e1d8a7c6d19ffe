package ownership

// Life is the state of the volume as a whole, whichever node owns it:
//
//	(intent) ─► Pending ─► Creating ─► Created ◄─► Updating
//	               ▲          │           ▲  │         │
//	               │          ▼           │  │         ▼
//	               └──── CreationFailed   └──┼── UpdateFailed
//	                          │              │         │
//	                          └──────────────┴────┬────┘
//	                                              ▼
//	                         DeletionFailed ◄─► Deleting ─► (no record)
//
// A crash needs no edge of its own: Creating goes back to Pending, Updating back
// to Created, and Deleting is carried out again, because every step of a
// provisioner is idempotent. Only a recorded decision leads to Deleting, and
// nothing leads back.
type Life int

const (
	// Pending: wanted and recorded, nothing made.
	Pending Life = iota
	// Creating: the provisioner is at work, or was when it crashed.
	Creating
	// CreationFailed: the same request may try again; until then something half
	// made may exist, so deletion goes through the provisioner.
	CreationFailed
	// Created: exists, with capacity and replicas as recorded.
	Created
	// Updating: grows. A volume never shrinks.
	Updating
	// UpdateFailed: has the old size; the next request may try again.
	UpdateFailed
	// Deleting: meant to be destroyed.
	Deleting
	// DeletionFailed: the provisioner refused; the next request tries again.
	DeletionFailed
)

var lifeNames = [...]string{"Pending", "Creating", "CreationFailed", "Created", "Updating", "UpdateFailed", "Deleting", "DeletionFailed"}

func (l Life) String() string { return lifeNames[l] }

var lifeEdges = map[[2]Life]bool{
	{Pending, Creating}: true, {Creating, Created}: true, {Creating, CreationFailed}: true, {Creating, Pending}: true,
	{CreationFailed, Pending}: true,
	{Created, Updating}:       true, {Updating, Created}: true, {Updating, UpdateFailed}: true, {UpdateFailed, Created}: true,
	{Pending, Deleting}: true, {Creating, Deleting}: true, {CreationFailed, Deleting}: true, {Created, Deleting}: true,
	{Updating, Deleting}: true, {UpdateFailed, Deleting}: true,
	{Deleting, DeletionFailed}: true, {DeletionFailed, Deleting}: true,
}

// MayFollow tells whether a volume may go from one to another.
func (l Life) MayFollow(old Life) bool { return l == old || lifeEdges[[2]Life{old, l}] }
