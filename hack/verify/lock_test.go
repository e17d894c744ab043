package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// withoutChecksums are providers in lock files, as module and address, whose releases are not verified. `make lock`
// adds their checksums. Add a new module here only while it cannot be locked.
var withoutChecksums = []string{
	"modules/aws registry.terraform.io/hashicorp/aws",
	"modules/azure registry.opentofu.org/hashicorp/azurerm",
	"modules/azure registry.terraform.io/hashicorp/azurerm",
	"modules/gcp registry.opentofu.org/hashicorp/google",
	"modules/nutanix registry.opentofu.org/nutanix/nutanix",
	"modules/nutanix registry.terraform.io/nutanix/nutanix",
	"modules/vsphere registry.opentofu.org/hashicorp/vsphere",
	"modules/vsphere registry.terraform.io/hashicorp/vsphere",
}

var (
	lockedProvider = regexp.MustCompile(`(?ms)^provider "([^"]+)" \{\n(.*?)^\}$`)
	checksum       = regexp.MustCompile(`(?m)^    "(h1:[A-Za-z0-9+/]{43}=|zh:[0-9a-f]{64})",$`)
)

// TestLockFilesHaveChecksums: a lock file without checksums accepts any binary as the provider.
func TestLockFilesHaveChecksums(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "modules", "*", ".terraform.lock.hcl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %q, %v", files, err)
	}
	examples, err := filepath.Glob(filepath.Join(root, "examples", "modules", "*", ".terraform.lock.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	var lacking []string
	for _, file := range append(files, examples...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range lockedProvider.FindAllStringSubmatch(string(content), -1) {
			listed := checksum.FindAllStringSubmatch(found[2], -1)
			if len(listed) != strings.Count(found[2], "\n    \"") {
				t.Errorf("%s: a checksum of %s is malformed; run 'make lock'", folder, found[1])
			}
			unpacked, packed := 0, 0
			for _, one := range listed {
				if strings.HasPrefix(one[1], "h1:") {
					unpacked++
				} else {
					packed++
				}
			}
			switch {
			case unpacked == 0 && packed == 0:
				lacking = append(lacking, filepath.ToSlash(folder)+" "+found[1])
			case unpacked < 4 || packed < 4: // engines verify a folder with h1, and a package with either
				t.Errorf("%s: got %d h1 and %d zh of %s, want those of four platforms; run 'make lock'",
					folder, unpacked, packed, found[1])
			}
		}
	}
	for _, one := range lacking {
		if !slices.Contains(withoutChecksums, one) {
			t.Errorf("%s has no checksums; run 'make lock'", one)
		}
	}
	for _, one := range withoutChecksums {
		if !slices.Contains(lacking, one) {
			t.Errorf("%s has checksums now, or is gone; remove it from withoutChecksums", one)
		}
	}
}
