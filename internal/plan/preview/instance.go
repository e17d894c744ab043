package preview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// tell adds what the module tells of an instance from its providerSpec alone. What keeps it from telling how large an instance is becomes a
// warning: it stops nothing but the growth from zero.
func (s *Set) tell(machine *machinev1beta1.Machine, served *module.Module) {
	value, err := render.ProviderSpec(machine, served)
	if err != nil {
		return // the check of the providerSpec says so
	}
	size, err := served.Size(value)
	if err != nil {
		s.Warnings = append(s.Warnings, "the size is not known to an autoscaler: "+err.Error())
	}
	if size != nil && (size.CPU != 0 || size.MemoryMiB != 0) {
		s.Size = &Size{CPU: size.CPU, MemoryMiB: size.MemoryMiB, GPU: size.GPU, Architecture: size.Architecture}
	}
	told := served.Preview(value)
	if told.Image != "" {
		s.Image = Value{Value: told.Image}
	}
	for _, disk := range told.Disks {
		one := Disk{Size: Value{Unknown: true}, Type: disk.Type}
		if disk.Size != "" {
			one.Size = Value{Value: disk.Size}
		}
		s.Disks = append(s.Disks, one)
	}
}

// maxImage bounds the name of an image in the table. The plan has it in full.
const maxImage = 48

// imageName is the image as the table has it. Of a long name the end is kept, from a slash on where there is one: names and versions stand
// there, behind projects and folders.
func (s *Set) imageName() string {
	const cut = "..."
	name := s.Image.cell()
	if utf8.RuneCountInString(name) <= maxImage {
		return name
	}
	runes := []rune(name)
	end := string(runes[len(runes)-maxImage+len(cut):])
	if _, rest, _ := strings.Cut(end, "/"); rest != "" {
		end = "/" + rest
	}
	return cut + end
}

// maxDisks bounds the disks in the table, counted without those that are like the one before.
const maxDisks = 4

// diskList names the disks, and those that are alike once.
func (s *Set) diskList() string {
	var texts, parts []string
	for _, disk := range s.Disks {
		texts = append(texts, strings.TrimSpace(disk.Size.cell()+" "+printable(disk.Type)))
	}
	for len(texts) > 0 {
		if len(parts) == maxDisks {
			parts = append(parts, fmt.Sprintf("%d more", len(texts)))
			break
		}
		alike := 1
		for alike < len(texts) && texts[alike] == texts[0] {
			alike++
		}
		part := texts[0]
		if alike > 1 {
			part = fmt.Sprintf("%d x %s", alike, part)
		}
		parts, texts = append(parts, part), texts[alike:]
	}
	return strings.Join(parts, ", ")
}
