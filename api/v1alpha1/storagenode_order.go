package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DiskOrder is what a node asks of the controllers about its attachment of a shared disk. A node without an order
// has nothing of the disk, and is to have nothing.
//
// ---
// The node alone places orders, each in place of its last one about the disk. So nothing is detached that the node
// has not let go of. The disk's handle is the key: two volumes that name one disk have one order.
type DiskOrder struct {
	// handle of the disk.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]{0,15}://[!-~]+$`
	Handle string `json:"handle"`

	// volume that the disk is.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume"`

	// id of the order, random. An answer is about the order of one id.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// wish is what the node asks for.
	// +required
	Wish DiskWish `json:"wish"`

	// state is the controllers' answer. An order to detach has none: it is taken away once nothing is
	// attached.
	// +required
	State DiskOrderState `json:"state"`

	// since is when the order was placed, by the node's clock, or answered, by the controller's.
	// +required
	Since metav1.Time `json:"since"`

	// problem says why an order was refused.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// DiskWish is what an order asks for.
//
// +kubebuilder:validation:Enum=Attach;Detach
type DiskWish string

const (
	// DiskAttach: attach the disk, and leave it attached.
	DiskAttach DiskWish = "Attach"
	// DiskDetach: the node has let go of the device. Detach the disk.
	DiskDetach DiskWish = "Detach"
)

// DiskOrderState is how far an order is.
//
// +kubebuilder:validation:Enum=Placed;Attached;Refused
type DiskOrderState string

const (
	// DiskOrderPlaced: no controller has answered yet.
	DiskOrderPlaced DiskOrderState = "Placed"
	// DiskOrderAttached: the disk is attached to the node's machine.
	DiskOrderAttached DiskOrderState = "Attached"
	// DiskOrderRefused: the disk was not attached, and no controller tries it again by itself.
	DiskOrderRefused DiskOrderState = "Refused"
)

// DiskOrder returns the node's order about a disk, or nil. It points into the StorageNode.
func (n *StorageNode) DiskOrder(handle string) *DiskOrder {
	for i := range n.Status.DiskOrders {
		if n.Status.DiskOrders[i].Handle == handle {
			return &n.Status.DiskOrders[i]
		}
	}
	return nil
}
