//go:build platform

package guesttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/internal/run"
)

const (
	targetName = "iqn.2026-01.dev.berth.test:lio"
	portal     = "127.0.0.1"
	// The kernel makes a unit's name of these digits and of its serial number.
	serial, otherSerial = "a1b2c3d4e5f60718293a4b5c6", "b1b2c3d4e5f60718293a4b5c6"
	namePrefix          = "naa.6001405"

	coreDir   = "/sys/kernel/config/target/core"
	portalDir = "/sys/kernel/config/target/iscsi/" + targetName + "/tpgt_1"
	savedDir  = "/var/target/pr"
)

var nodes = []string{"a", "b", "c"}

func initiator(node string) string { return "iqn.2026-01.dev.berth.test:" + node }

// sh runs a script, as an administrator would, and returns its output.
func sh(t testing.TB, script string) string {
	t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: "script", Program: "sh", Args: []string{"-euc", script}})
	if err != nil {
		t.Fatalf("%s\n%v", script, err)
	}
	return strings.TrimSpace(string(out))
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// target is the kernel's.
type target struct {
	t    testing.TB
	disk string
	// allowed are the nodes that may log in. dynamic: every node may, and none has an ACL.
	allowed map[string]bool
	dynamic bool
}

// prepare makes this machine one that can be target and initiator.
func prepare(t testing.TB) {
	t.Helper()
	for _, m := range []string{"configfs", "target_core_mod", "target_core_iblock", "iscsi_target_mod", "iscsi_tcp"} {
		sh(t, "modprobe "+m)
	}
	sh(t, `mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
ip link set lo up
mkdir -p `+savedDir+` /run/udev/rules.d
# The kernel does not flush the file with the registrations.
mount -o remount,sync /
# udev opens a disk that a writer closed, and the disk would be in use for a moment.
echo 'SUBSYSTEM=="block", OPTIONS:="nowatch"' > /run/udev/rules.d/99-nowatch.rules
udevadm control --reload`)
	put(t, "/etc/iscsi/initiatorname.iscsi", "InitiatorName="+initiator("default")+"\n")
	machineHas(t, password{}, password{})
	for _, n := range nodes {
		sh(t, fmt.Sprintf(`test -e /etc/iscsi/ifaces/%[1]s || iscsiadm -m iface -I %[1]s -o new
iscsiadm -m iface -I %[1]s -o update -n iface.initiatorname -v %[2]s`, n, initiator(n)))
	}
}

func backing(number int) string { return fmt.Sprintf("%s/iblock_%d/unit", coreDir, number) }

// unit makes a unit of a disk, with the registrations that were saved for it.
func (l *target) unit(number int, disk, serial string) {
	l.t.Helper()
	dir := backing(number)
	sh(l.t, "mkdir -p "+dir)
	put(l.t, dir+"/control", "udev_path="+disk)
	put(l.t, dir+"/udev_path", disk)
	put(l.t, dir+"/enable", "1")
	put(l.t, dir+"/wwn/vpd_unit_serial", serial)
	saved, err := os.ReadFile(filepath.Join(savedDir, "aptpl_"+serial))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	var facts []string
	for line := range strings.Lines(string(saved)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "PR_REG_START"):
			facts = nil
		case strings.HasPrefix(line, "PR_REG_END"):
			put(l.t, dir+"/pr/res_aptpl_metadata", strings.Join(facts, ","))
		default:
			facts = append(facts, line)
		}
	}
}

func (l *target) start() {
	l.t.Helper()
	l.unit(1, l.disk, serial)
	sh(l.t, fmt.Sprintf(`mkdir -p %[1]s/np/%[2]s:3260 %[1]s/lun/lun_1
echo 0 > %[1]s/attrib/authentication
echo 0 > %[1]s/attrib/generate_node_acls
ln -s %[3]s %[1]s/lun/lun_1/unit`, portalDir, portal, backing(1)))
	if l.dynamic {
		sh(l.t, fmt.Sprintf("echo 1 > %[1]s/generate_node_acls; echo 1 > %[1]s/cache_dynamic_acls; echo 0 > %[1]s/demo_mode_write_protect", portalDir+"/attrib"))
	}
	for n := range l.allowed {
		l.allow(n)
	}
	l.enable(true)
}

// enable opens the target or closes it. All sessions end when it closes.
func (l *target) enable(open bool) {
	l.t.Helper()
	text := "0"
	if open {
		text = "1"
	}
	put(l.t, portalDir+"/enable", text)
}

func acl(node string) string { return portalDir + "/acls/" + initiator(node) }

func (l *target) allow(node string) {
	l.t.Helper()
	l.allowed[node] = true
	if l.dynamic {
		return
	}
	sh(l.t, fmt.Sprintf("mkdir -p %[1]s/lun_1; test -e %[1]s/lun_1/unit || ln -s %[2]s/lun/lun_1 %[1]s/lun_1/unit", acl(node), portalDir))
}

// password is a name and a secret of CHAP.
type password struct{ name, secret string }

// asks has the target let a node in by its password alone, and prove itself by its own.
func (l *target) asks(node string, of, itself password) {
	l.t.Helper()
	put(l.t, portalDir+"/attrib/authentication", "1")
	for file, text := range map[string]string{"userid": of.name, "password": of.secret, "userid_mutual": itself.name, "password_mutual": itself.secret} {
		put(l.t, acl(node)+"/auth/"+file, text)
	}
}

// machineHas configures the machine's open-iscsi: with its own password and with the target's, or with none.
func machineHas(t testing.TB, own, target password) {
	t.Helper()
	text := "iscsid.startup = /sbin/iscsid\nnode.startup = manual\n"
	if own.name != "" {
		text += fmt.Sprintf(`node.session.auth.authmethod = CHAP
node.session.auth.username = %s
node.session.auth.password = %s
node.session.auth.username_in = %s
node.session.auth.password_in = %s
`, own.name, own.secret, target.name, target.secret)
	}
	put(t, "/etc/iscsi/iscsid.conf", text)
}

func (l *target) refuse(node string) {
	l.t.Helper()
	delete(l.allowed, node)
	l.unlist(node)
}

func (l *target) unlist(node string) {
	l.t.Helper()
	sh(l.t, fmt.Sprintf("if test -d %[1]s; then rm -f %[1]s/lun_1/unit; rmdir %[1]s/lun_1 %[1]s; fi", acl(node)))
}

// stop removes the target, as a loss of power does.
func (l *target) stop() {
	l.t.Helper()
	if _, err := os.Stat(portalDir); err == nil {
		l.enable(false)
		for _, n := range nodes {
			l.unlist(n)
		}
		sh(l.t, fmt.Sprintf(`cd %[1]s
rm -f lun/lun_1/unit
rmdir lun/lun_1 np/%[2]s:3260
cd /
rmdir %[1]s %[3]s`, portalDir, portal, filepath.Dir(portalDir)))
	}
	for number := 1; number <= 2; number++ {
		sh(l.t, fmt.Sprintf("if test -d %[1]s; then rmdir %[1]s %[2]s; fi", backing(number), filepath.Dir(backing(number))))
	}
}

// misplace puts another unit in the unit's place. The sessions go on.
func (l *target) misplace(disk string) {
	l.t.Helper()
	l.unit(2, disk, otherSerial)
	for n := range l.allowed {
		sh(l.t, "rm "+acl(n)+"/lun_1/unit")
	}
	sh(l.t, fmt.Sprintf("rm -f %[1]s/lun/lun_1/unit; ln -s %[2]s %[1]s/lun/lun_1/unit", portalDir, backing(2)))
	for n := range l.allowed {
		l.allow(n)
	}
}
