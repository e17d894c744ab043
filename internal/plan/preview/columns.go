package preview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// columns are the titles of the table, and functions that return the cells of a set.
var columns = []struct {
	title string
	value func(*Set) string
}{
	{"NAME", tableName},
	{"REPLICAS", func(s *Set) string { return fmt.Sprint(s.Replicas) }},
	{"TYPE", func(s *Set) string { return s.InstanceType.Cell() }},
	{"REGION", func(s *Set) string { return s.Region.Cell() }},
	{"ZONE", func(s *Set) string { return s.Zone.Cell() }},
	{"CPU", func(s *Set) string {
		return size(s, func(size *Size) string { return fmt.Sprint(size.CPU) })
	}},
	{"MEMORY", func(s *Set) string {
		return size(s, func(size *Size) string { return memory(size.MemoryMiB) })
	}},
	{"GPU", func(s *Set) string {
		return size(s, func(size *Size) string { return fmt.Sprint(size.GPU) })
	}},
	{"IMAGE", imageName},
	{"DISKS", diskList},
	{"ADDRESSES", addressList},
}

// nothing is the text of an empty cell.
const nothing = "-"

// rows returns the table, titles first, without empty columns.
func rows(p *Preview) [][]string {
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

func tableName(s *Set) string {
	name := s.Namespace + "/" + s.Name
	if s.Kind != KindMachineSet {
		name = s.Kind + " " + name
	}
	return print.Printable(name)
}

func size(s *Set, text func(*Size) string) string {
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

// addressList returns the addresses, or their types if no address is known.
func addressList(s *Set) string {
	var parts, types []string
	for _, one := range s.Addresses {
		if one.Type != "" {
			types = append(types, one.Type)
		}
		parts = append(parts, strings.TrimSpace(one.Type+" "+one.Address.Cell()))
	}
	for _, one := range s.Addresses {
		if !one.Address.Unknown {
			return print.Printable(strings.Join(parts, ", "))
		}
	}
	switch {
	case len(s.Addresses) == 0:
		return ""
	case len(types) == 0:
		return unknownText
	}
	return print.Printable(strings.Join(types, ", ")) + " " + unknownText
}

// maxImage bounds the image's name in the table. The plan shows it in full.
const maxImage = 48

// imageName returns the image's name for the table. It shortens a long name from the left, at a slash if possible,
// because names and versions follow projects and folders.
func imageName(s *Set) string {
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

// maxDisks bounds the disks in the table, after identical neighbours are merged.
const maxDisks = 4

// diskList names the disks and merges identical ones.
func diskList(s *Set) string {
	var texts, parts []string
	for _, disk := range s.Disks {
		texts = append(texts, strings.TrimSpace(disk.Size.Cell()+" "+print.Printable(disk.Type)))
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
