package redact

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxAligned is the maximum length of a text whose base64 is searched for inside longer base64.
	maxAligned = 4 << 10
	// minAligned is the minimum length of base64 to search for like that: shorter ones are found in
	// words.
	minAligned = 6
)

// shapesOf returns the shapes in which tools print a text.
func shapesOf(text string) []string {
	raw := []byte(text)
	shapes := []string{
		text,
		// engines and providers print several lines as one
		strings.Join(strings.Fields(text), " "),
		quoted(text, false),
		quoted(text, true),
		quoted(quoted(text, false), false), // a document in a document
		strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(text), `"`), `"`),
		html.EscapeString(text),
		url.QueryEscape(text),
		url.PathEscape(text),
		lowerEscapes(url.QueryEscape(text)),
		lowerEscapes(url.PathEscape(text)),
		base64.StdEncoding.EncodeToString(raw),
		base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw),
		base64.RawURLEncoding.EncodeToString(raw),
	}
	if len(text) <= maxAligned {
		shapes = append(shapes, alignedOf(raw, base64.RawStdEncoding)...)
		shapes = append(shapes, alignedOf(raw, base64.RawURLEncoding)...)
	}
	return shapes
}

// quoted returns text as written between the quotes of a JSON or HCL string.
func quoted(text string, escapeHTML bool) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapeHTML)
	if err := encoder.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(out.String()), `"`), `"`)
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes returns an escaped text with escapes in lower case.
func lowerEscapes(escaped string) string {
	return percent.ReplaceAllStringFunc(escaped, strings.ToLower)
}

// alignedOf returns the parts of a text's base64 that stay the same wherever the text is inside a
// longer one: three strings, without their ends, which depend on the context.
func alignedOf(raw []byte, encoding *base64.Encoding) []string {
	var found []string
	for before := range 3 {
		encoded := encoding.EncodeToString(append(make([]byte, before, before+len(raw)), raw...))
		begin, end := (before*8+5)/6, (before+len(raw))*8/6
		if end-begin >= minAligned {
			found = append(found, encoded[begin:end])
		}
	}
	return found
}
