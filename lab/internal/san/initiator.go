package san

import "berth.dev/berth/lab/internal/guest"

// InitiatorFiles returns the files that make a node an initiator of its own. The image's name
// is the same in all guests, and two initiators of one name would be one to the target. The
// daemon is started by the first iscsiadm that needs it: nodes have no systemd.
func InitiatorFiles(node string) []guest.File {
	return []guest.File{
		{Path: "/etc/iscsi/initiatorname.iscsi", Mode: 0o600, Data: []byte("InitiatorName=" + InitiatorName(node) + "\n")},
		{Path: "/etc/iscsi/iscsid.conf", Mode: 0o600, Data: []byte("iscsid.startup = /sbin/iscsid\nnode.startup = manual\nnode.session.timeo.replacement_timeout = 120\n")},
	}
}

// InitiatorName returns the name by which a node logs in.
func InitiatorName(node string) string { return "iqn.2026-01.dev.berth.lab:" + node }
