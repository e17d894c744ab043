package modulesource

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// The places that a module may come from.
const (
	schemeFile  = "file"
	schemeHTTPS = "https"
)

const forms = "https://host/module.tar.gz@sha256:... or file:///folder/module.tar.gz@sha256:..."

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Reference names a place and the digest of what is allowed to come from there.
type Reference struct {
	place  *url.URL
	digest string
}

// IsReference tells whether a text begins as a reference does.
func IsReference(text string) bool {
	for _, scheme := range []string{schemeFile, schemeHTTPS} {
		if strings.HasPrefix(text, scheme+"://") {
			return true
		}
	}
	return false
}

// ParseReference reads a reference: https://host/path@sha256:... or file:///path@sha256:... The digest is that of the archive's bytes.
func ParseReference(text string) (Reference, error) {
	place, digest := cut(text)
	parsed, err := parsePlace(place)
	if err != nil {
		return Reference{}, err
	}
	switch {
	case digest == "":
		return Reference{}, fmt.Errorf("%s has no digest; add @sha256: and the digest that 'kubectl machine module pack' printed", show(parsed))
	case !digestPattern.MatchString(digest):
		return Reference{}, fmt.Errorf("%s has the digest %q, which is not sha256: and 64 hexadecimal digits; copy it as it was printed", show(parsed), digest)
	}
	return Reference{place: parsed, digest: digest}, nil
}

// cut takes the digest off, whatever it is.
func cut(text string) (place, digest string) {
	if at := strings.LastIndex(text, "@"); at >= 0 && !strings.Contains(text[at:], "/") {
		return text[:at], text[at+1:]
	}
	return text, ""
}

// parsePlace reads a reference without its digest. Errors show no more of it than is known to be no secret.
func parsePlace(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || !IsReference(text) { // an error of url.Parse has all of it
		return nil, fmt.Errorf("it is no reference to a module; write it as %s", forms)
	}
	switch {
	case parsed.User != nil:
		return nil, fmt.Errorf("the reference to %s has a user in it, which would be shown in logs; remove it", parsed.Host)
	case parsed.Fragment != "":
		return nil, fmt.Errorf("%s has a part that begins with #; remove it", show(parsed))
	case parsed.RawQuery != "" && parsed.Scheme != schemeHTTPS:
		return nil, fmt.Errorf("%s has a part that begins with ?; remove it", show(parsed))
	case parsed.Scheme == schemeFile && (parsed.Host != "" || !filepath.IsAbs(parsed.Path)):
		return nil, fmt.Errorf("%s is no absolute path; write three slashes, as in file:///folder/module.tar.gz", show(parsed))
	case parsed.Scheme == schemeHTTPS && (parsed.Host == "" || strings.Trim(parsed.Path, "/") == ""):
		return nil, fmt.Errorf("%s names no file; write it as https://host/module.tar.gz", show(parsed))
	}
	return parsed, nil
}

// show answers a place for people. What follows ? is left out, as it may be a secret.
func show(place *url.URL) string {
	shown := *place
	shown.User, shown.Fragment, shown.RawFragment = nil, "", ""
	if shown.RawQuery != "" {
		shown.RawQuery = "..."
	}
	return shown.String()
}

// String answers the reference without what may be a secret, for logs and errors.
func (r Reference) String() string { return show(r.place) + "@" + r.digest }
