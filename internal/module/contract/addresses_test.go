package contract_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// TestAddressClaimsNameFieldsThatCanHoldThem changes what the module vsphere says of them.
func TestAddressClaimsNameFieldsThatCanHoldThem(t *testing.T) {
	shipped := os.DirFS("../../../modules/vsphere")
	for name, tc := range map[string]struct{ old, new, want string }{
		"as it is shipped":      {"devices: network.devices", "devices: network.devices", ""},
		"without a gateway":     {"    gateway: gateway\n", "", ""},
		"no such list":          {"devices: network.devices", "devices: network.cards", `spec.addressClaims.devices is "network.cards", which is not a list of objects`},
		"a list of strings":     {"devices: network.devices", "devices: tagIDs", `spec.addressClaims.devices is "tagIDs", which is not a list of objects`},
		"pools that are none":   {"pools: addressesFromPools", "pools: nameservers", `spec.addressClaims.pools is "nameservers", which is not a list of objects with the strings group, resource and name`},
		"addresses of no list":  {"addresses: ipAddrs", "addresses: gateway", `spec.addressClaims.addresses is "gateway", which is not a list of strings`},
		"a gateway of no field": {"gateway: gateway", "gateway: router", `spec.addressClaims.gateway is "router", which is not a string`},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := fs.ReadFile(shipped, "module.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), tc.old) {
				t.Fatalf("module.yaml has no %q", tc.old)
			}
			files := fstest.MapFS{"vsphere/module.yaml": {Data: []byte(strings.Replace(string(content), tc.old, tc.new, 1))}}
			err = fs.WalkDir(shipped, ".", func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || path == "module.yaml" {
					return err
				}
				data, err := fs.ReadFile(shipped, path)
				files["vsphere/"+path] = &fstest.MapFile{Data: data}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			folder, err := fs.Sub(files, "vsphere")
			if err != nil {
				t.Fatal(err)
			}
			_, err = load.Module(folder)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
