package redact

import (
	"regexp"
	"strings"
)

// Redacted replaces a sensitive string.
const Redacted = "(sensitive)"

// Withheld replaces a text that is not to be shown even without sensitive strings.
const Withheld = "the text is withheld, since it may hold values of sensitive inputs"

const (
	// maxField bounds one text of a diagnostic.
	maxField = 8 << 10
	// maxShapes bounds what is searched for.
	maxShapes = 1 << 18
	// maxMasked is how many secrets a text may have and still be shown: with more of them it is a copy of what it was given.
	maxMasked = 3
)

// Redactor replaces sensitive strings, in each of the shapes in which tools print them.
type Redactor struct {
	shapes matcher
	// structured says that one of the secrets is a document, full that there is more in them than is searched for.
	structured, full bool
	// sockets and folders match paths that are other ones at each try; nil where none are replaced.
	sockets, folders *regexp.Regexp
	// inputs matches texts about a value of an input that is sensitive; nil where none is named.
	inputs *regexp.Regexp
}

// New returns a Redactor for the strings that must not show.
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
			return "" // what follows is relative to it
		}
		return "."
	})
}

// Inside has paths in the private folder of an engine replaced by what they are relative to the folder of a run: the same failure then has the same
// text at every try. Below root there are folders of many, one for each run or process, in which a module or program may be in a folder of its own.
func (r *Redactor) Inside(root string, many, modules []string) *Redactor {
	one := regexp.QuoteMeta(root) + "/(?:" + strings.Join(many, "|") + ")/[^/\\s\"'`:,;()\\[\\]]+"
	r.sockets = regexp.MustCompile(one + `(?:/[^/\s"']+)*/plugin[0-9]+`)
	r.folders = regexp.MustCompile(one + "(?:/(?:" + strings.Join(modules, "|") + `)\b)?/?`)
	return r
}

// Error returns an error whose text is free of what Redact replaces. It wraps the error.
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

// Unwrap returns the error as it was.
func (e *redactedError) Unwrap() error { return e.cause }

// Contains reports whether text holds a sensitive string.
func (r *Redactor) Contains(text string) bool { return len(r.shapes.spans(text)) > 0 }

// dumped matches what Go prints of a map.
var dumped = regexp.MustCompile(`map\[[^\]\s:]+:`)

// Withholds reports whether a text that an engine or a provider printed is not to be shown even without sensitive strings: it is a copy of what it
// was given, in which numbers and short words stay, or is about the value of an input that is sensitive.
func (r *Redactor) Withholds(text string) bool {
	return r.full || len(r.shapes.spans(text)) > maxMasked || r.structured && dumped.MatchString(text) || r.inputs != nil && r.inputs.MatchString(text)
}

// Copies reports whether so many sensitive strings were replaced in a text that it is a copy of what it was given.
func Copies(redacted string) bool { return strings.Count(redacted, Redacted) > maxMasked }

// About has texts withheld that are about values of these inputs, as OpenTofu, Terraform and Pulumi name them.
func (r *Redactor) About(inputs []string) *Redactor {
	if len(inputs) == 0 {
		return r
	}
	names := make([]string, 0, len(inputs))
	for _, name := range inputs {
		names = append(names, strings.ReplaceAll(regexp.QuoteMeta(name), "_", "_?"))
	}
	one := `(?:` + strings.Join(names, "|") + `)\b`
	r.inputs = regexp.MustCompile(`(?i)\bvar\.` + one + `|Examine values at '[^']*\b` + one + `|\bconfig \[` + one + `|\$\{` + one)
	return r
}

// Shorten returns text without sensitive strings and cut to size, in this order: a cut must not leave half a secret.
func (r *Redactor) Shorten(text string) string { return Shorten(r.Redact(text), maxField) }
