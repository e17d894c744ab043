package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces a sensitive string.
const Redacted = "(sensitive)"

const (
	// minSensitive is the shortest string that is held for a secret. Shorter ones ("1", "yes") occur everywhere: replacing them
	// would hide the message and name the value.
	minSensitive = 4
	// minSensitiveLine is the same for one line of a longer text, where short lines are mostly syntax.
	minSensitiveLine = 8
	// maxField bounds one text of a diagnostic.
	maxField = 8 << 10
)

// Redactor replaces sensitive strings, in each of the shapes in which tools print them.
type Redactor struct {
	shapes   []string
	replacer *strings.Replacer
	// sockets and folders match paths that are other ones at each try; nil where none are replaced.
	sockets, folders *regexp.Regexp
}

// New returns a Redactor for the strings that must not show.
func New(sensitive []string) *Redactor {
	seen := map[string]struct{}{}
	for _, secret := range sensitive {
		for _, part := range sensitiveParts(secret) {
			for _, shape := range shapesOf(part) {
				seen[shape] = struct{}{}
			}
		}
	}
	shapes := make([]string, 0, len(seen))
	for shape := range seen {
		shapes = append(shapes, shape)
	}
	// A replacer takes the first that fits, so that a whole text must come before its lines.
	slices.SortFunc(shapes, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(shapes))
	for _, shape := range shapes {
		pairs = append(pairs, shape, Redacted)
	}
	return &Redactor{shapes: shapes, replacer: strings.NewReplacer(pairs...)}
}

// secretField finds what a line of a configuration file, in YAML, JSON or as name=value, says of a field whose name looks secret.
var secretField = regexp.MustCompile(`(?i)(?:pass|token|secret|private|credential)[\w-]*["']?\s*[:=]\s*["']?(.*?)["']?,?$`)

// sensitiveParts returns the secret, the secret without the white space around it, its lines, and the values of secret fields in them.
func sensitiveParts(secret string) []string {
	trimmed := strings.TrimSpace(secret)
	if len(trimmed) < minSensitive {
		return nil
	}
	parts := []string{secret, trimmed}
	if !strings.Contains(trimmed, "\n") {
		return parts
	}
	for line := range strings.Lines(trimmed) {
		if line = strings.TrimSpace(line); len(line) >= minSensitiveLine {
			parts = append(parts, line)
		}
		if field := secretField.FindStringSubmatch(line); field != nil && len(field[1]) >= minSensitive {
			parts = append(parts, field[1])
		}
	}
	return parts
}

func shapesOf(text string) []string {
	shapes := []string{
		text,
		// engines and providers print texts of several lines as one
		strings.Join(strings.Fields(text), " "),
		quoted(text),
		url.QueryEscape(text),
		url.PathEscape(text),
		base64.StdEncoding.EncodeToString([]byte(text)),
		base64.RawStdEncoding.EncodeToString([]byte(text)),
		base64.URLEncoding.EncodeToString([]byte(text)),
		base64.RawURLEncoding.EncodeToString([]byte(text)),
	}
	return shapes
}

// quoted is text as written between the quotes of a JSON or HCL string.
func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(out.String()), `"`), `"`)
}

// Redact returns text without sensitive strings.
func (r *Redactor) Redact(text string) string {
	if text == "" {
		return text
	}
	if len(r.shapes) > 0 {
		text = r.replacer.Replace(text)
	}
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
func (r *Redactor) Contains(text string) bool {
	return slices.ContainsFunc(r.shapes, func(shape string) bool { return strings.Contains(text, shape) })
}

// Shorten returns text without sensitive strings and cut to size, in this order: a cut must not leave half a secret.
func (r *Redactor) Shorten(text string) string { return Shorten(r.Redact(text), maxField) }
