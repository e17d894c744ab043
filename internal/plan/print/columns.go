package print

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/plan/text"
)

// columns are those of the table, and the values of one set in each.
var columns = []struct {
	title string
	value func(*preview.Set) string
}{
	{"NAME", tableName},
	{"REPLICAS", func(s *preview.Set) string { return fmt.Sprint(s.Replicas) }},
	{"TYPE", func(s *preview.Set) string { return s.InstanceType.Cell() }},
	{"REGION", func(s *preview.Set) string { return s.Region.Cell() }},
	{"ZONE", func(s *preview.Set) string { return s.Zone.Cell() }},
	{"CPU", func(s *preview.Set) string {
		return size(s, func(size *preview.Size) string { return fmt.Sprint(size.CPU) })
	}},
	{"MEMORY", func(s *preview.Set) string {
		return size(s, func(size *preview.Size) string { return memory(size.MemoryMiB) })
	}},
	{"GPU", func(s *preview.Set) string {
		return size(s, func(size *preview.Size) string { return fmt.Sprint(size.GPU) })
	}},
	{"IMAGE", imageName},
	{"DISKS", diskList},
	{"ADDRESSES", addressList},
}

// nothing is the text of a cell with no value.
const nothing = "-"

// rows returns the table, its titles first, without columns that are empty.
func rows(p *preview.Preview) [][]string {
	rows := make([][]string, len(p.Sets)+1)
	for n, column := range columns {
		cells := []string{column.title}
		used := n == 0
		for _, set := range p.Sets {
			cell := column.value(set)
			used = used || cell != ""
			if cell == "" {
				cell = nothing
			}
			cells = append(cells, cell)
		}
		if !used {
			continue
		}
		for row, cell := range cells {
			rows[row] = append(rows[row], cell)
		}
	}
	return rows
}

func tableName(s *preview.Set) string {
	name := s.Namespace + "/" + s.Name
	if s.Kind != manifest.KindMachineSet {
		name = s.Kind + " " + name
	}
	return text.Printable(name)
}

func size(s *preview.Set, text func(*preview.Size) string) string {
	if s.Size == nil {
		return ""
	}
	return text(s.Size)
}

func memory(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%dGi", mib/1024)
	}
	return fmt.Sprintf("%dMi", mib)
}

// addressList names the addresses. Where none is known, their types are.
func addressList(s *preview.Set) string {
	var parts, types []string
	for _, one := range s.Addresses {
		if one.Type != "" {
			types = append(types, one.Type)
		}
		parts = append(parts, strings.TrimSpace(one.Type+" "+one.Address.Cell()))
	}
	for _, one := range s.Addresses {
		if !one.Address.Unknown {
			return text.Printable(strings.Join(parts, ", "))
		}
	}
	switch {
	case len(s.Addresses) == 0:
		return ""
	case len(types) == 0:
		return diff.UnknownText
	}
	return text.Printable(strings.Join(types, ", ")) + " " + diff.UnknownText
}

// maxImage bounds the name of an image in the table. The plan has it in full.
const maxImage = 48

// imageName is the image as the table has it. Of a long name the end is kept, from a slash on where there is one: names and versions stand
// there, behind projects and folders.
func imageName(s *preview.Set) string {
	const cut = "..."
	name := s.Image.Cell()
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
func diskList(s *preview.Set) string {
	var texts, parts []string
	for _, disk := range s.Disks {
		texts = append(texts, strings.TrimSpace(disk.Size.Cell()+" "+text.Printable(disk.Type)))
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
