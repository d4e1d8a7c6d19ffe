package san

import (
	"errors"
	"os"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/process"
)

func off(t *testing.T, s Settings) *SAN {
	t.Helper()
	made, err := Create(Place{Dir: t.TempDir(), NetNS: "/run/netns/none"}, s)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSettingsThatNoTargetHasAreRefused(t *testing.T) {
	for want, s := range map[string]Settings{
		"use tgt or lio": {Kind: "nvme"},
		"--kind lio":     {Kind: TGT, Persist: true},
	} {
		if _, err := Create(Place{Dir: t.TempDir()}, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", s, err, want)
		}
	}
}

func TestLogicalUnitsOfATargetThatIsOffComeAndGoWithTheirFiles(t *testing.T) {
	for _, kind := range []string{TGT, LIO} {
		t.Run(kind, func(t *testing.T) {
			s := off(t, Settings{Kind: kind})
			first, err1 := s.Add(t.Context(), 1<<20)
			second, err2 := s.Add(t.Context(), 2<<20)
			if err := errors.Join(err1, err2, s.Remove(t.Context(), first.Number)); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(second.File); err != nil || info.Size() != 2<<20 {
				t.Errorf("content of unit 2: %v, %v", info, err)
			}
			if _, err := os.Stat(first.File); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("content of unit 1 is left: %v", err)
			}
			again, err := Open(Place{Dir: s.dir})
			if err != nil || len(again.LUNs()) != 1 || again.LUNs()[0] != second || again.Power() != guest.Off {
				t.Errorf("opened again: %+v, %v", again, err)
			}
			third, err := again.Add(t.Context(), 1<<20)
			if err != nil || third.Number != 1 || third.Serial == second.Serial {
				t.Errorf("third unit: %+v, %v; want the free number", third, err)
			}
		})
	}
}

func TestWhatCannotBeIsRefusedWithTheReason(t *testing.T) {
	s := off(t, Settings{Kind: TGT})
	_, tooSmall := s.Add(t.Context(), 512)
	for want, err := range map[string]error{
		"at least 1M":           tooSmall,
		"no logical unit 7":     s.Remove(t.Context(), 7),
		"lab san on":            s.Delay(t.Context(), 1),
		"must not be negative":  s.Delay(t.Context(), -1),
		"make one with `lab sa": ErrNotExist,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	for range maxLUNs {
		if _, err := s.Add(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Add(t.Context(), 1<<20); err == nil {
		t.Error("more logical units than the target can have")
	}
}

func TestAnUnknownSANSaysHowToMakeOne(t *testing.T) {
	if _, err := Open(Place{Dir: t.TempDir()}); !errors.Is(err, ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestReservationsAreLoadedBeforeTheUnitIsExported(t *testing.T) {
	script := lioOffer(LUN{Number: 3, Serial: "s3"})
	load, export := strings.Index(script, "res_aptpl_metadata"), strings.Index(script, "ln -s")
	if load < 0 || export < load {
		t.Errorf("the reservations are loaded at %d, the unit is exported at %d:\n%s", load, export, script)
	}
}

func TestInitiatorsWithRegistrationsHaveACLsBeforeTheTargetOpens(t *testing.T) {
	script := lioOffer(LUN{Number: 3, Serial: "s3"})
	export, acl, shown := strings.Index(script, "ln -s $b"), strings.Index(script, "/acls/$i"), strings.Index(script, "ln -s $l $m/unit")
	if export < 0 || acl < export || shown < acl {
		t.Errorf("the unit is exported at %d, the ACLs are made at %d, and show it at %d:\n%s", export, acl, shown, script)
	}
}

func TestTheScriptsAreValidForAShell(t *testing.T) {
	unit := LUN{Number: 1, Serial: "s1"}
	for name, script := range map[string]string{
		"begin": lioBegin(false), "offer": lioOffer(unit), "withdraw": lioWithdraw(unit), "enable": lioEnable,
	} {
		err := process.Run(t.Context(), process.Command{Path: "sh", Args: []string{"-n"}, Stdin: strings.NewReader(script)})
		if err != nil || strings.Contains(script, "%!") {
			t.Errorf("%s: %v\n%s", name, err, script)
		}
	}
}

func TestEachSavedRegistrationBecomesALine(t *testing.T) {
	saved := "PR_REG_START: 0\ninitiator_fabric=iSCSI\nsa_res_key=10\nres_holder=1\nPR_REG_END: 0\n" +
		"PR_REG_START: 1\ninitiator_fabric=iSCSI\nsa_res_key=11\nres_holder=0\nPR_REG_END: 1\n"
	out, err := process.Output(t.Context(), process.Command{Path: "awk", Args: []string{registrations}, Stdin: strings.NewReader(saved)})
	want := "initiator_fabric=iSCSI,sa_res_key=10,res_holder=1\ninitiator_fabric=iSCSI,sa_res_key=11,res_holder=0\n"
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

func TestOnlyATargetThatDoesNotPersistForgets(t *testing.T) {
	for persist, forgets := range map[bool]bool{true: false, false: true} {
		if got := strings.Contains(lioBegin(persist), "rm -f "+lioSaved); got != forgets {
			t.Errorf("persist %v: forgets %v", persist, got)
		}
	}
}
