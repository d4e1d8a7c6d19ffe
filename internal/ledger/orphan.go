package ledger

// Orphan returns where a node lists something of the owner that no object accounts for: the
// first of the places in order, should there be several.
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
