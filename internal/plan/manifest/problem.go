package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/plan/text"
)

// Problem says what is wrong with an input, where, and what to do.
type Problem struct {
	// File is as it was named; "-" is the standard input.
	File string
	// Document counts from one, and is zero where the problem is not in one. Line counts from one in the file; zero is unknown.
	Document, Line int
	// Object is kind, namespace and name, as far as they are known.
	Object string
	// Field is the path of the field in the object; empty where it is not about one.
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
	line.WriteString(": " + text.OneLine(p.Problem))
	if p.Fix != "" {
		line.WriteString("; " + text.OneLine(p.Fix))
	}
	return text.Printable(line.String())
}

// Problems are all that is wrong with the inputs, at least one.
type Problems []*Problem

// Error implements error, one problem a line.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for _, one := range p {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single problems.
func (p Problems) Unwrap() []error {
	errs := make([]error, 0, len(p))
	for _, one := range p {
		errs = append(errs, one)
	}
	return errs
}

// sorted returns them by document and line, those of one file together.
func (p Problems) sorted() Problems {
	files := map[string]int{}
	for _, one := range p {
		if _, seen := files[one.File]; !seen {
			files[one.File] = len(files)
		}
	}
	slices.SortStableFunc(p, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Line, b.Line))
	})
	return p
}

// asError returns nil where there are none.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p.sorted()
}
