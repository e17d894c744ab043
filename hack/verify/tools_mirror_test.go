package verify

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestMirrorsHaveManifests(t *testing.T) {
	t.Parallel()
	const program = "registry.opentofu.org/hashicorp/vsphere/1.26.0/linux_amd64/terraform-provider-vsphere_v1.26.0"
	b := newToolbox(t)
	lists := func(mirror, content string) {
		t.Helper()
		want := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), program)
		if got := b.content(mirror + ".sha256"); got != want {
			t.Errorf("got the manifest %q of %s, want %q", got, mirror, want)
		}
	}
	b.run(nil, "provider-vsphere")
	lists("mirror", "built\n")
	b.write("bin/mirror/"+program, "changed")
	newer := time.Now().Add(time.Hour) // some file systems have coarse timestamps
	if err := os.Chtimes(b.path("bin", "mirror", program), newer, newer); err != nil {
		t.Fatal(err)
	}
	b.run(nil, "provider-vsphere")
	lists("mirror", "changed")
	b.run(nil, "schema-vsphere")
	lists("schemas", "changed") // the real provider, which replaces its recorded schema
}
