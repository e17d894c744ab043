package modules_test

import (
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// What modules write of the Machine and of the installation into one text, before there was an installation and since, is read back.
func TestTextsSayWhoseAResourceIs(t *testing.T) {
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*module.Module{}
	for _, one := range loaded {
		byName[one.Name()] = one
	}
	for _, tc := range []struct{ module, address, object, wantInstallation string }{
		{"libvirt", "libvirt_domain.this", `{"description":"Machine ns/m 5e0a of the cluster c"}`, ""},
		{"libvirt", "libvirt_domain.this", `{"description":"Machine ns/m 5e0a of the installation c0ff of the cluster c"}`, "c0ff"},
		{"nutanix", "nutanix_virtual_machine.this", `{"description":"Machine ns/m 5e0a"}`, ""},
		{"nutanix", "nutanix_virtual_machine.this", `{"description":"Installation c0ff, Machine ns/m 5e0a"}`, "c0ff"},
		{"vsphere", "vsphere_virtual_machine.this", `{"annotation":"Machine ns/m 5e0a"}`, ""},
		{"vsphere", "vsphere_virtual_machine.this", `{"annotation":"Installation c0ff, Machine ns/m 5e0a"}`, "c0ff"},
		{"openstack", "openstack_networking_port_v2.interface", `{"description":"Machine ns/m 5e0a"}`, ""},
		{"openstack", "openstack_networking_port_v2.interface", `{"description":"Installation c0ff, Machine ns/m 5e0a"}`, "c0ff"},
		{"openstack", "openstack_networking_port_v2.interface", `{"description":"of a user Machine 5e0a"}`, ""},
		{"openstack", "openstack_networking_port_v2.interface", `{"description":"Installation forged, Machine 00 Installation c0ff, Machine 5e0a"}`, "c0ff"},
	} {
		got, known := byName[tc.module].Identities().OwnerOf(tc.address, []byte(tc.object))
		if want := (module.Owner{MachineUID: "5e0a", Installation: tc.wantInstallation}); !known || got != want {
			t.Errorf("%s: %s is %+v, want %+v", tc.module, tc.object, got, want)
		}
	}
}
