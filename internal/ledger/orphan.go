package ledger

// Orphan returns the place at which a node lists something of the owner that no
// object accounts for. If there are several, it is the first in order.
func (l *Ledger) Orphan(owner Owner) (node, pool string, found bool) {
	for _, name := range l.NodeNames() {
		for _, b := range l.nodes[name].books {
			for i := range b.Inventory {
				if item := &b.Inventory[i]; item.Orphan && item.Owner == owner {
					return name, b.Name, true
				}
			}
		}
	}
	return "", "", false
}
