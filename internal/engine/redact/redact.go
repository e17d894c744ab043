package redact

import (
	"regexp"
	"strings"
)

// Redacted replaces a sensitive string.
const Redacted = "(sensitive)"

// Withheld replaces a text that must not be shown even without sensitive strings.
const Withheld = "the text is withheld because it may contain values of sensitive inputs"

const (
	// maxField limits one text of a diagnostic.
	maxField = 8 << 10
	// maxShapes limits the number of strings to search for.
	maxShapes = 1 << 18
	// maxMasked is how many secrets a text may contain and still be shown. With more, it counts as a
	// copy of the input.
	maxMasked = 3
)

// Redactor replaces sensitive strings in all the shapes in which tools print them.
type Redactor struct {
	shapes matcher
	// structured means that one of the secrets is a document; full that there are more parts than are
	// searched for.
	structured, full bool
	// sockets and folders match paths that differ at each attempt; nil if none are replaced.
	sockets, folders *regexp.Regexp
	// inputs matches texts about a value of a sensitive input; nil if there is none.
	inputs *regexp.Regexp
}

// New returns a Redactor for sensitive strings.
func New(sensitive []string) *Redactor {
	c := collector{seen: map[string]bool{}}
	for _, secret := range sensitive {
		c.whole(secret)
	}
	r := &Redactor{structured: c.structured, full: c.full}
	for _, part := range c.found {
		for _, shape := range shapesOf(part) {
			if r.shapes.count >= maxShapes {
				r.full = true
				return r
			}
			if len(shape) >= minSensitive {
				r.shapes.add(shape)
			}
		}
	}
	return r
}

// Redact returns text without sensitive strings.
func (r *Redactor) Redact(text string) string {
	if text == "" {
		return text
	}
	text = r.shapes.replace(text, Redacted)
	if r.folders == nil {
		return text
	}
	text = r.sockets.ReplaceAllLiteralString(text, "a plugin's socket")
	return r.folders.ReplaceAllStringFunc(text, func(path string) string {
		if strings.HasSuffix(path, "/") {
			return "" // the rest is relative to it
		}
		return "."
	})
}

// Inside replaces paths in an engine's private folder by paths relative to the run's folder, so
// that a recurring failure always has the same text. many are the folders below root with one
// folder for each run or process, in which modules are the folders that may contain a module or
// program.
func (r *Redactor) Inside(root string, many, modules []string) *Redactor {
	one := regexp.QuoteMeta(root) + "/(?:" + strings.Join(many, "|") + ")/[^/\\s\"'`:,;()\\[\\]]+"
	r.sockets = regexp.MustCompile(one + `(?:/[^/\s"']+)*/plugin[0-9]+`)
	r.folders = regexp.MustCompile(one + "(?:/(?:" + strings.Join(modules, "|") + `)\b)?/?`)
	return r
}

// Error returns an error with a redacted text. It wraps err.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	return &redactedError{text: r.Redact(err.Error()), cause: err}
}

type redactedError struct {
	text  string
	cause error
}

// Error implements error.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *redactedError) Unwrap() error { return e.cause }

// Contains reports whether text holds a sensitive string.
func (r *Redactor) Contains(text string) bool { return len(r.shapes.spans(text)) > 0 }

// dumped matches a map as Go prints it.
var dumped = regexp.MustCompile(`map\[[^\]\s:]+:`)

// Withholds reports whether a text from an engine or provider must not be shown even without
// sensitive strings. Such a text is a copy of the input, in which numbers and short words remain,
// or is about the value of a sensitive input.
func (r *Redactor) Withholds(text string) bool {
	return r.full || len(r.shapes.spans(text)) > maxMasked || r.structured && dumped.MatchString(text) ||
		r.inputs != nil && r.inputs.MatchString(text)
}

// Copies reports whether so many sensitive strings were replaced in a text that it must be a copy
// of the input.
func Copies(redacted string) bool { return strings.Count(redacted, Redacted) > maxMasked }

// About withholds texts about the values of these inputs, as OpenTofu, Terraform and Pulumi name
// them.
func (r *Redactor) About(inputs []string) *Redactor {
	if len(inputs) == 0 {
		return r
	}
	names := make([]string, 0, len(inputs))
	for _, name := range inputs {
		names = append(names, strings.ReplaceAll(regexp.QuoteMeta(name), "_", "_?"))
	}
	one := `(?:` + strings.Join(names, "|") + `)\b`
	r.inputs = regexp.MustCompile(`(?i)\bvar\.` + one + `|Examine values at '[^']*\b` + one + `|\bconfig \[` + one +
		`|\$\{` + one)
	return r
}

// Shorten redacts and then truncates text, so that no half of a secret remains.
func (r *Redactor) Shorten(text string) string { return Shorten(r.Redact(text), maxField) }
