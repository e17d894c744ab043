package preview

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

func TestTheNameOfAnImageFitsTheTable(t *testing.T) {
	tests := map[string]struct{ image, want string }{
		"a module without one leaves the cell empty": {},
		"a short name is whole":                      {"ami-0123456789abcdef0", "ami-0123456789abcdef0"},
		"a name as long as there is room is whole": {strings.Repeat("ä", maxImage),
			strings.Repeat("ä", maxImage)},
		"of a path, the end is kept from a slash on": {"projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64",
			".../global/images/rhcos-9-6-gcp-x86-64"},
		"of a long name, the end is kept": {strings.Repeat("ä", maxImage) + "z",
			"..." + strings.Repeat("ä", maxImage-4) + "z"},
		"a slash at the end cuts nothing off": {strings.Repeat("b", maxImage) + "/",
			"..." + strings.Repeat("b", maxImage-4) + "/"},
		"what would move the cursor is shown, not obeyed": {"a\x1b[2J", print.Printable("a\x1b[2J")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := &Set{}
			if tc.image != "" {
				set.Image = Value{Value: tc.image}
			}
			if got := imageName(set); got != tc.want {
				t.Errorf("it is %q; want %q", got, tc.want)
			}
		})
	}
}

func TestTheListOfDisksFitsTheTable(t *testing.T) {
	disk := func(size, kind string) Disk {
		if size == "" {
			return Disk{Size: Value{Unknown: true}, Type: kind}
		}
		return Disk{Size: Value{Value: size}, Type: kind}
	}
	tests := map[string]struct {
		disks []Disk
		want  string
	}{
		"a module without one leaves the cell empty": {},
		"a disk has a size and a type": {[]Disk{disk("120Gi", "gp3"), disk("500Gi", "io2")},
			"120Gi gp3, 500Gi io2"},
		"what only the infrastructure knows is marked": {[]Disk{disk("", ""), disk("", "gp3")},
			"(known after apply), (known after apply) gp3"},
		"disks that are alike are counted where they are": {[]Disk{disk("1Gi", ""), disk("2Gi", ""),
			disk("2Gi", ""), disk("2Gi", "a")}, "1Gi, 2 x 2Gi, 2Gi a"},
		"as many as there is room for are listed": {[]Disk{disk("1Gi", ""), disk("2Gi", ""),
			disk("3Gi", ""), disk("4Gi", ""), disk("4Gi", "")}, "1Gi, 2Gi, 3Gi, 2 x 4Gi"},
		"of more, the rest is counted, each disk of it by itself": {[]Disk{disk("1Gi", ""), disk("2Gi", ""),
			disk("3Gi", ""), disk("4Gi", ""), disk("5Gi", ""), disk("5Gi", "")}, "1Gi, 2Gi, 3Gi, 4Gi, 2 more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := diskList(&Set{Disks: tc.disks}); got != tc.want {
				t.Errorf("it is %q; want %q", got, tc.want)
			}
		})
	}
}
