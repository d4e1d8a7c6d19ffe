package san

import (
	"fmt"

	"berth.dev/berth/lab/internal/network"
)

const (
	lioCore   = "/sys/kernel/config/target/core"
	lioPortal = "/sys/kernel/config/target/iscsi/" + Target + "/tpgt_1"
	// lioSaved is where the kernel writes the reservations that are to survive. The path is
	// the kernel's.
	lioSaved = "/var/target/pr"
)

// lioBegin makes the target, closed. The kernel writes reservations to a file and does not
// flush it, so the filesystem below is mounted with sync: an answer that an initiator got
// is then on the disk.
func lioBegin(persist bool) string {
	script := fmt.Sprintf(`mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
mkdir -p %[1]s
mount -o remount,sync /
`, lioSaved)
	if !persist {
		script += fmt.Sprintf("rm -f %s/*\n", lioSaved)
	}
	return script + fmt.Sprintf(`mkdir -p %[1]s/np/%[2]s:%[3]d
echo 0 > %[1]s/attrib/authentication
echo 1 > %[1]s/attrib/generate_node_acls
echo 1 > %[1]s/attrib/cache_dynamic_acls
echo 0 > %[1]s/attrib/demo_mode_write_protect
`, lioPortal, network.SANAddress, Port)
}

// lioEnable opens the target. Initiators that come before all logical units are there would
// take the missing ones for removed.
const lioEnable = "echo 1 > " + lioPortal + "/enable\n"

// lioOffer offers a logical unit. Saved reservations must be there before the unit is
// exported: the kernel takes none later. Its file has one line for each fact, and its
// reader wants one line for each registration. Each of their initiators gets an ACL. Without
// one, the kernel restores the registration of an initiator only when that logs in, and then
// also its reservation, even if another initiator has taken the disk since.
func lioOffer(u LUN) string {
	return fmt.Sprintf(`b=%[1]s/iblock_%[2]d/lun%[2]d
for i in $(seq 200); do test -b %[3]s && break; sleep 0.1; done
mkdir -p $b
echo udev_path=%[3]s > $b/control
echo %[3]s > $b/udev_path
echo 1 > $b/enable
echo %[4]s > $b/wwn/vpd_unit_serial
if [ -s %[5]s/aptpl_%[4]s ]; then
  awk '%[7]s' %[5]s/aptpl_%[4]s |
  while read -r registration; do echo "$registration" > $b/pr/res_aptpl_metadata; done
fi
mkdir -p %[6]s/lun/lun_%[2]d
ln -s $b %[6]s/lun/lun_%[2]d/unit
if [ -s %[5]s/aptpl_%[4]s ]; then
  for i in $(sed -n 's/^initiator_node=//p' %[5]s/aptpl_%[4]s | sort -u); do mkdir -p %[6]s/acls/$i; done
fi
%[8]s`, lioCore, u.Number, u.disk().Device(Machine), u.Serial, lioSaved, lioPortal, registrations, lioMap)
}

// lioMap shows every logical unit to every initiator that has an ACL: it sees no others.
const lioMap = `for a in ` + lioPortal + `/acls/*/; do
  for l in ` + lioPortal + `/lun/lun_*; do
    m=$a$(basename $l)
    if [ -d $a ] && [ ! -d $m ]; then mkdir $m; ln -s $l $m/unit; fi
  done
done
`

// registrations is a program of awk that makes one line of each registration in the file that
// the kernel writes.
const registrations = `/^PR_REG_START/ {r = ""; next} /^PR_REG_END/ {print r; next} {r = r (r == "" ? "" : ",") $0}`

// lioWithdraw takes a logical unit away, with its reservations, as far as it is there.
func lioWithdraw(u LUN) string {
	return fmt.Sprintf(`rm -f %[1]s/acls/*/lun_%[2]d/unit %[1]s/lun/lun_%[2]d/unit
for d in %[1]s/acls/*/lun_%[2]d %[1]s/lun/lun_%[2]d %[3]s/iblock_%[2]d/lun%[2]d %[3]s/iblock_%[2]d; do
  test ! -d $d || rmdir $d
done
rm -f %[4]s/aptpl_%[5]s
`, lioPortal, u.Number, lioCore, lioSaved, u.Serial)
}
