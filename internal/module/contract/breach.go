package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Breach is a place where a module does not comply with the contract.
type Breach struct {
	// File is the path inside the module. Empty if files are missing.
	File string
	// Line in File, counted from 1; 0 if the breach concerns the whole file.
	Line int
	// What is the offender, for example `variable "machine"`. May be empty.
	What string
	// Problem is what is wrong.
	Problem string
	// Fix is how to fix it.
	Fix string
	// Unsafe means that a run of the content could do more than its providers do: run other programs,
	// or read the manager's files. Such content is never used, wherever it comes from.
	Unsafe bool
}

// String renders the breach on one line: place, offender, problem and fix.
func (b Breach) String() string {
	var text strings.Builder
	text.WriteString(b.File)
	if b.Line > 0 {
		fmt.Fprintf(&text, ":%d", b.Line)
	}
	if text.Len() > 0 {
		text.WriteString(": ")
	}
	if b.What != "" {
		text.WriteString(b.What + " ")
	}
	text.WriteString(b.Problem)
	if b.Fix != "" {
		text.WriteString("; " + b.Fix)
	}
	return text.String()
}

// Error means that a module does not comply with the contract. It lists every breach, ordered by
// file and line.
type Error struct {
	// Module is the module's name; empty if module.yaml has none.
	Module string
	// Engine of the module; empty if unknown.
	Engine v1alpha1.Engine
	// Breaches are all breaches found, at least one.
	Breaches []Breach
}

// Error implements error, one breach a line.
func (e *Error) Error() string {
	traits := module.TraitsOf(e.Engine)
	name := traits.Noun
	if e.Module != "" {
		name = fmt.Sprintf("%s %q", name, e.Module)
	} else {
		name = "the " + name
	}
	lines := make([]string, 0, len(e.Breaches)+1)
	lines = append(lines, name+" breaks the contract of "+traits.Title+"s:")
	for _, breach := range e.Breaches {
		lines = append(lines, "  "+breach.String())
	}
	return strings.Join(lines, "\n")
}

// Report collects breaches during the check of a module.
type Report struct {
	breaches []Breach
}

// Add adds a breach.
func (r *Report) Add(breach Breach) {
	r.breaches = append(r.breaches, breach)
}

// At adds a breach at a place in HCL.
func (r *Report) At(where hcl.Range, what, problem, fix string) {
	r.Add(Breach{File: where.Filename, Line: where.Start.Line, What: what, Problem: problem, Fix: fix})
}

// UnsafeAt adds an unsafe breach at a place in HCL.
func (r *Report) UnsafeAt(where hcl.Range, what, problem, fix string) {
	r.Add(Breach{File: where.Filename, Line: where.Start.Line, What: what, Problem: problem, Fix: fix, Unsafe: true})
}

// MarkUnsafe marks the matching breaches as unsafe, and reports whether there are any.
func (r *Report) MarkUnsafe(match func(Breach) bool) (marked bool) {
	for i, breach := range r.breaches {
		if match(breach) {
			r.breaches[i].Unsafe, marked = true, true
		}
	}
	return marked
}

// diagnostics adds errors of the HCL parser, and ignores warnings. They concern the whole file if
// what is empty. Then the breach is unsafe: an engine may be able to read the file, which the other
// rules cannot check.
func (r *Report) diagnostics(file, what string, diags hcl.Diagnostics) {
	for _, diag := range diags {
		if diag.Severity != hcl.DiagError {
			continue
		}
		breach := Breach{File: file, What: what, Problem: "is not valid HCL: " + OneLine(diag.Summary),
			Fix: OneLine(diag.Detail), Unsafe: what == ""}
		if diag.Subject != nil {
			breach.Line = diag.Subject.Start.Line
		}
		r.Add(breach)
	}
}

// Err returns an [*Error] with all breaches of a module, or nil.
func (r *Report) Err(name string, engine v1alpha1.Engine) error {
	return newError(name, engine, r.breaches)
}

// UnsafeErr returns an [*Error] with the unsafe breaches, or nil.
func (r *Report) UnsafeErr(name string, engine v1alpha1.Engine) error {
	return newError(name, engine, slices.DeleteFunc(slices.Clone(r.breaches), func(b Breach) bool { return !b.Unsafe }))
}

func newError(name string, engine v1alpha1.Engine, breaches []Breach) error {
	if len(breaches) == 0 {
		return nil
	}
	slices.SortStableFunc(breaches, func(a, b Breach) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.What, b.What))
	})
	return &Error{Module: name, Engine: engine, Breaches: slices.Compact(breaches)}
}

// OneLine returns a text with each run of white space replaced by one space.
func OneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
