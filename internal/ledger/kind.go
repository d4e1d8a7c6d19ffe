package ledger

// Kind is a kind of resource that a pool hands out. A kind reduces all it knows to
// two whole numbers - the charge of a volume, and the limit of the pool - so that
// fitting, scoring, explaining and previewing are written once for all kinds. A new
// kind is a new implementation; nothing else changes.
//
// Implementations are values without state: they are called for every node and
// pod, by many goroutines.
type Kind interface {
	// Name of the kind, for people.
	Name() string
	// Charge is how much of the pool a volume of this size takes. It does not
	// depend on the other volumes of the pool.
	Charge(p *Pool, c *Class, bytes int64) int64
	// Limit is the most that foreign use and all charges may be together once a
	// volume of the class was added; it may be negative. The reason is Fits, or
	// says why the pool takes nothing new of the class, however much is free.
	Limit(p *Pool, c *Class) (int64, Reason)
	// Whole is true when a pool takes one volume and is then used up: the
	// smallest that fits is then the best, whatever the strategy.
	Whole() bool
}

// The kinds of pools. They are compared by identity.
var (
	// Thick pools carve bytes: volume groups, and any pool that sets aside the
	// bytes it promises.
	Thick Kind = thick{}
	// Thin pools promise bytes and fill up later.
	Thin Kind = thin{}
	// Device is one disk, handed out whole. The pool bears the disk's name.
	Device Kind = device{}
	// Slots are places at which a node can attach a shared disk. Each volume
	// takes one.
	Slots Kind = slots{}
)

type thick struct{}

func (thick) Name() string { return "thick" }
func (thick) Whole() bool  { return false }

func (thick) Charge(p *Pool, c *Class, bytes int64) int64 { return c.Layout.charge(bytes, p.Unit) }

func (thick) Limit(p *Pool, c *Class) (int64, Reason) {
	return p.Total - c.spare(p.Total), mediaReason(p, c)
}

type thin struct{}

func (thin) Name() string { return "thin" }
func (thin) Whole() bool  { return false }

// Charge is the virtual size: a thin volume has no layout of its own.
func (thin) Charge(p *Pool, _ *Class, bytes int64) int64 { return Layout{}.charge(bytes, p.Unit) }

// Limit bounds the promises; the real fill only decides whether there may be more
// of them. Spare is of real bytes, so it is subtracted before over-provisioning.
func (thin) Limit(p *Pool, c *Class) (int64, Reason) {
	usable := p.Total - c.spare(p.Total)
	fill := c.MaxFill
	if fill == 0 {
		fill = 100
	}
	reason := mediaReason(p, c)
	if p.Filled >= min(usable, percent(p.Total, fill)) || p.FilledMetadata >= fill {
		reason = PoolFull
	}
	if usable < 0 {
		return usable, reason
	}
	return percent(usable, max(c.Overprovision, 100)), reason
}

type device struct{}

func (device) Name() string { return "device" }
func (device) Whole() bool  { return true }

func (device) Charge(p *Pool, _ *Class, bytes int64) int64 { return max(p.Total, bytes) }

func (device) Limit(p *Pool, c *Class) (int64, Reason) { return p.Total, mediaReason(p, c) }

type slots struct{}

func (slots) Name() string { return "slots" }
func (slots) Whole() bool  { return false }

func (slots) Charge(*Pool, *Class, int64) int64 { return 1 }

func (slots) Limit(p *Pool, c *Class) (int64, Reason) { return p.Total - c.Spare, Fits }

func mediaReason(p *Pool, c *Class) Reason {
	if c.Media != "" && c.Media != p.Media {
		return OtherMedia
	}
	return Fits
}
