package ownership

import "time"

// Order is what a node asks of the controllers about its attachment of a shared disk, where they attach disks and
// nodes do not. A node without an order has nothing of the disk, and is to have nothing.
//
// The node alone places orders, each in place of its last one. Controllers answer, and take an order to detach
// away once nothing is attached. So nothing is detached that its node has not let go of.
type Order struct {
	// ID is random. An answer is about the order of one id, so one that comes late changes no other order.
	ID    string
	Wish  Wish
	State OrderState
	// Since is when the order was placed, or answered.
	Since time.Time
	// Problem says to people why an order was refused.
	Problem string
}

// Wish is what an order asks for.
type Wish int

const (
	// ToAttach: attach the disk, and leave it attached.
	ToAttach Wish = iota
	// ToDetach: the node has let go of the device. Detach the disk, whatever is left of it.
	ToDetach
)

func (w Wish) String() string { return [...]string{"Attach", "Detach"}[w] }

// OrderState is how far an order is.
type OrderState int

const (
	// Placed: no controller has answered yet.
	Placed OrderState = iota
	// Carried: the disk is attached. No operation that began before the order can detach it any more.
	Carried
	// Refused: the disk was not attached, and no controller tries it again by itself. A part may be left.
	Refused
)

func (s OrderState) String() string { return [...]string{"Placed", "Attached", "Refused"}[s] }
