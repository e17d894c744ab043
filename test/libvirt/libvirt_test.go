package libvirt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// TestDomainTypeIsThatOfADomainThatRuns uses a virsh that fails as on machines whose KVM runs nothing.
func TestDomainTypeIsThatOfADomainThatRuns(t *testing.T) {
	long.Test(t)
	for name, one := range map[string]struct{ script, wantType, wantReason string }{
		"no KVM": {
			`[ "$4" != domcapabilities ] || { echo "invalid argument: KVM is not supported" >&2; exit 1; }`,
			"qemu", "KVM is not supported",
		},
		"it does not start with the module's processor": {
			`[ "$4" != create ] || ! grep -q "<cpu mode='maximum'/>" "$5" || { echo "failed to set MSR 0x10a" >&2; exit 1; }`,
			"qemu", "failed to set MSR 0x10a",
		},
		"it ends at once": {`[ "$4" != domstate ] || { echo "failed to get domain" >&2; exit 1; }`,
			"qemu", "failed to get domain"},
		"it is paused": {`[ "$4" != domstate ] || echo paused`, "qemu", "the domain is paused"},
		"it runs":      {`[ "$4" != domstate ] || echo running`, "kvm", "a domain of this type runs"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "virsh"),
				[]byte("#!/bin/sh\n"+one.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
			for variable, value := range map[string]string{
				uriVariable: "test:///default", dirVariable: t.TempDir(), bridgeVariable: "guests",
			} {
				t.Setenv(variable, value)
			}
			h, err := Open(t.Context(), "probed")
			if err != nil {
				t.Fatal(err)
			}
			if h.DomainType != one.wantType || !strings.Contains(h.Reason, one.wantReason) {
				t.Errorf("type %s, reason %q; want %s, with %q", h.DomainType, h.Reason, one.wantType, one.wantReason)
			}
		})
	}
}
