package wire

import (
	"strings"
	"testing"
)

func good() Plan {
	return Plan{
		Hostname: "node1", Token: "0123456789abcdef",
		Sysctl:   map[string]string{"net/ipv4/ip_forward": "1"},
		Services: []Service{{Name: "kubelet", Argv: []string{"/bin/kubelet"}}},
	}
}

func TestGoodPlanIsAccepted(t *testing.T) {
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
}

func TestBadPlansAreRefusedWithTheReason(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*Plan)
		want  string
	}{
		"no host name":                {func(p *Plan) { p.Hostname = "" }, "hostname"},
		"host name with a dot":        {func(p *Plan) { p.Hostname = "a.b" }, "hostname"},
		"token that can be guessed":   {func(p *Plan) { p.Token = "short" }, "token"},
		"parameter outside of proc":   {func(p *Plan) { p.Sysctl["../../etc/passwd"] = "" }, "kernel parameter"},
		"absolute parameter":          {func(p *Plan) { p.Sysctl["/net"] = "" }, "kernel parameter"},
		"service without a program":   {func(p *Plan) { p.Services[0].Argv = nil }, "absolute"},
		"service looked up in a path": {func(p *Plan) { p.Services[0].Argv[0] = "kubelet" }, "absolute"},
		"two services of one name":    {func(p *Plan) { p.Services = append(p.Services, p.Services[0]) }, "twice"},
		"service name with a slash":   {func(p *Plan) { p.Services[0].Name = "a/b" }, "service name"},
		"service name with a comma":   {func(p *Plan) { p.Services[0].Name = "a,b" }, "service name"},
	} {
		t.Run(name, func(t *testing.T) {
			p := good()
			tc.spoil(&p)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %q", err, tc.want)
			}
		})
	}
}
