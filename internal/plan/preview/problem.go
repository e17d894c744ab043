package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Problem says what is wrong with an input, where, and what to do.
type Problem struct {
	// File is the path as given; "-" is standard input.
	File string
	// Document counts from one; zero if the problem is not in a document. Line counts from one; zero if unknown.
	Document, Line int
	// Object is the kind, namespace and name, as far as known.
	Object string
	// Field is the field's path in the object, if the problem is in a field.
	Field string
	// Problem says what is wrong, Fix what to do.
	Problem, Fix string
}

// Error implements error, on one line.
func (p *Problem) Error() string {
	var line strings.Builder
	line.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&line, ":%d", p.Line)
	}
	if p.Document > 0 {
		fmt.Fprintf(&line, ": document %d", p.Document)
	}
	if p.Object != "" {
		line.WriteString(", " + p.Object)
	}
	if p.Field != "" {
		line.WriteString(": " + p.Field)
	}
	line.WriteString(": " + print.Collapse(p.Problem))
	if p.Fix != "" {
		line.WriteString("; " + print.Collapse(p.Fix))
	}
	return print.Printable(line.String())
}

// Problems are the problems of the inputs, at least one.
type Problems []*Problem

// Error implements error, one problem a line.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for _, one := range p {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each problem as an error.
func (p Problems) Unwrap() []error {
	errs := make([]error, 0, len(p))
	for _, one := range p {
		errs = append(errs, one)
	}
	return errs
}

// sorted returns the problems by file, document and line.
func (p Problems) sorted() Problems {
	files := map[string]int{}
	for _, one := range p {
		if _, seen := files[one.File]; !seen {
			files[one.File] = len(files)
		}
	}
	slices.SortStableFunc(p, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Document, b.Document),
			cmp.Compare(a.Line, b.Line))
	})
	return p
}

// asError returns nil if there are no problems.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p.sorted()
}
