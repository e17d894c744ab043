package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARealProviderReplacesItsRecordedSchema(t *testing.T) {
	t.Parallel()
	const provider = "registry.opentofu.org/hashicorp/vsphere/1.26.0/linux_amd64"
	const program = provider + "/terraform-provider-vsphere_v1.26.0"
	b := newToolbox(t)
	// serves compares the folder for vSphere in bin/schemas, after resolving links.
	serves := func(want string) {
		t.Helper()
		for _, registry := range []string{"registry.opentofu.org", "registry.terraform.io"} {
			name := strings.Replace(provider, "registry.opentofu.org", registry, 1)
			if got, err := filepath.EvalSymlinks(b.path("bin", "schemas", name)); err != nil ||
				got != b.path("bin", want, provider) {
				t.Errorf("got %s of %s, %v, want the one in %s", got, registry, err, want)
			}
		}
	}
	count := func(output, want string) {
		t.Helper()
		if !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
	count(b.run(nil, "--for", "plugin"),
		"[2/2] building schema-aws, schema-azurerm, schema-google, schema-kubectl, schema-vsphere, schema-libvirt, "+
			"schema-openstack, schema-nutanix; ")
	serves("schemas")
	count(b.run(nil, "--for", "plugin"), "9 were there, 0 taken, 0 built")
	serves("schemas")
	b.run(nil, "provider-vsphere")
	serves("mirror")
	b.write("bin/mirror/"+program, "the real one")
	count(b.run(nil, "--for", "plugin"), "9 were there, 0 taken, 0 built")
	serves("mirror")

	b.write("bin/.stamps/schema-vsphere", "another version")
	count(b.run(nil, "--for", "plugin"), "8 were there, 0 taken, 1 built")
	serves("mirror")
	if got := b.content("mirror/" + program); got != "the real one" {
		t.Errorf("bin/mirror has a recorded schema: %q", got)
	}

	if err := os.RemoveAll(b.path("bin", "mirror")); err != nil {
		t.Fatal(err)
	}
	count(b.run(nil, "--for", "plugin"), "8 were there, 0 taken, 1 built")
	serves("schemas")

	b = newToolbox(t)
	b.run(nil, "provider-vsphere")
	count(b.run(nil, "--for", "plugin"), "0 were there, 0 taken, 9 built")
	serves("mirror")
	count(b.run(nil, "--for", "plugin"), "9 were there, 0 taken, 0 built")
	count(b.run(nil, "--for", "test-modules"), "10 were there")
	serves("mirror")
}
