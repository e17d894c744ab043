package module

import (
	"bytes"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

const (
	readmeFile = "README.md"
	// fieldsHeading begins the section of the README with the table of fields.
	fieldsHeading = "## providerSpec"
	// notSupported is in the row of a field that other implementations have.
	notSupported = "not supported"
)

// fieldRow is a field in the README's table.
type fieldRow struct {
	path, text string
	line       int
}

// covers reports whether the row documents a field: by its path, or by the path of what contains it.
func (r fieldRow) covers(path string) bool {
	rest, within := strings.CutPrefix(path, r.path)
	return within && (rest == "" || strings.ContainsRune(".[{", rune(rest[0])))
}

// checkFields compares the README's table of fields with the type of provider_spec, both ways.
func (m *checkedModule) checkFields(loaded *module.Module) {
	declared := loaded.Variable(module.VariableProviderSpec).Type
	if !loaded.Traits().HCL || !declared.IsObjectType() {
		return // the README of a stack refers to that of its module
	}
	content, err := fs.ReadFile(m.files, readmeFile)
	if err != nil {
		return // the contract reports it
	}
	rows, heading := fieldRows(content)
	if len(rows) == 0 {
		m.LeftOut = append(m.LeftOut, "table of fields in "+readmeFile)
		return
	}
	fields := map[string]bool{}
	addFields(declared, "", fields)
	sorted := slices.Sorted(maps.Keys(fields))
	for _, row := range rows {
		if !slices.ContainsFunc(sorted, row.covers) && !strings.Contains(row.text, notSupported) {
			m.add(contract.Breach{File: readmeFile, Line: row.line, What: row.path,
				Problem: "is no field of provider_spec",
				Fix:     "correct or remove its row, or write that it is " + notSupported})
		}
	}
	for _, path := range sorted {
		if !slices.ContainsFunc(rows, func(row fieldRow) bool { return row.covers(path) }) {
			m.add(contract.Breach{File: readmeFile, Line: heading, What: path,
				Problem: "is a field of provider_spec, but has no row", Fix: "add one to the table"})
		}
	}
}

// addFields adds the paths of a type: the attributes of objects, "[]" for each element of a list and
// "{}" for each of a map.
func addFields(declared cty.Type, path string, fields map[string]bool) {
	switch {
	case declared.IsObjectType():
		for name, attribute := range declared.AttributeTypes() {
			addFields(attribute, strings.TrimPrefix(path+"."+name, "."), fields)
		}
	case declared.IsListType() || declared.IsSetType():
		addFields(declared.ElementType(), path+"[]", fields)
	case declared.IsMapType():
		addFields(declared.ElementType(), path+"{}", fields)
	default:
		fields[path] = true
	}
}

var (
	rowPattern  = regexp.MustCompile("^\\| (`[^|]*) \\|(.*)$")
	namePattern = regexp.MustCompile("`([^`]+)`")
)

// fieldRows returns the rows of the table, and the line of its heading. A name that starts with a
// dot is next to the one before.
func fieldRows(readme []byte) (rows []fieldRow, heading int) {
	number, inside := 0, false
	for line := range bytes.Lines(readme) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		if strings.HasPrefix(text, "## ") {
			if inside = text == fieldsHeading; inside {
				heading = number
			}
		}
		cells := rowPattern.FindStringSubmatch(text)
		if !inside || cells == nil {
			continue
		}
		last := ""
		for _, name := range namePattern.FindAllStringSubmatch(cells[1], -1) {
			path := name[1]
			if strings.HasPrefix(path, ".") {
				path = last[:max(0, strings.LastIndex(last, "."))] + path
			}
			rows, last = append(rows, fieldRow{path: path, text: cells[2], line: number}), path
		}
	}
	return rows, heading
}
