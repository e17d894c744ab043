package source

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
	schemeOCI   = "oci"
)

const forms = "oci://registry/repository@sha256:..., https://host/module.tar.gz@sha256:... or file:///folder/module.tar.gz@sha256:..."

var (
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	// repositoryPattern is what the OCI specification allows; the library that asks registries allows dots to lead elsewhere.
	repositoryPattern = regexp.MustCompile(`^(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$`)
)

// Reference names a location and the digest of what it may serve.
type Reference struct {
	location *url.URL
	digest   string
}

// IsReference reports whether a text begins as a reference does.
func IsReference(text string) bool {
	for _, scheme := range []string{schemeFile, schemeHTTPS, schemeOCI} {
		if strings.HasPrefix(text, scheme+"://") {
			return true
		}
	}
	return false
}

// ParseReference reads a reference: oci://registry/repository[:tag]@sha256:..., https://host/path@sha256:... or file:///path@sha256:...
// The digest is that of the artifact's manifest, or of the archive's bytes. A tag is a remark for people.
func ParseReference(text string) (Reference, error) {
	location, digest := cut(text)
	parsed, err := parseLocation(location)
	if err != nil {
		return Reference{}, err
	}
	switch {
	case digest == "":
		return Reference{}, fmt.Errorf("%s has no digest; add @sha256: and the digest that 'kubectl machine module push' or 'pack' printed", show(parsed))
	case !digestPattern.MatchString(digest):
		return Reference{}, fmt.Errorf("%s has the digest %q, which is not sha256: and 64 hexadecimal digits; copy it as it was printed", show(parsed), digest)
	}
	return Reference{location: parsed, digest: digest}, nil
}

// cut takes the digest off, whatever it is.
func cut(text string) (location, digest string) {
	if at := strings.LastIndex(text, "@"); at >= 0 && !strings.Contains(text[at:], "/") {
		return text[:at], text[at+1:]
	}
	return text, ""
}

// parseLocation reads a reference without its digest. Errors show no more of it than is known to be no secret.
func parseLocation(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || !IsReference(text) { // an error of url.Parse has all of it
		return nil, fmt.Errorf("it is no reference to a module; write it as %s", forms)
	}
	switch {
	case parsed.User != nil:
		return nil, fmt.Errorf("the reference to %s has a user in it, which would be shown in logs; remove it, registries take credentials from Docker's configuration",
			parsed.Host)
	case parsed.Fragment != "":
		return nil, fmt.Errorf("%s has a part that begins with #; remove it", show(parsed))
	case parsed.RawQuery != "" && parsed.Scheme != schemeHTTPS:
		return nil, fmt.Errorf("%s has a part that begins with ?; remove it", show(parsed))
	case parsed.Scheme == schemeOCI:
		return parsed, checkRepository(parsed)
	case parsed.Scheme == schemeFile && (parsed.Host != "" || !filepath.IsAbs(parsed.Path)):
		return nil, fmt.Errorf("%s is no absolute path; write three slashes, as in file:///folder/module.tar.gz", show(parsed))
	case parsed.Scheme == schemeHTTPS && (parsed.Host == "" || strings.Trim(parsed.Path, "/") == ""):
		return nil, fmt.Errorf("%s names no file; write it as https://host/module.tar.gz", show(parsed))
	}
	return parsed, nil
}

// checkRepository checks that a location is one in a registry. The registry is always named: there is no default.
func checkRepository(location *url.URL) error {
	const fix = "write it as oci://registry/repository or oci://registry/repository:tag"
	if location.Host == "" || strings.Trim(location.Path, "/") == "" {
		return fmt.Errorf("%s names no repository; %s", show(location), fix)
	}
	if !strings.ContainsAny(location.Host, ".:") && location.Host != "localhost" {
		return fmt.Errorf("%s does not begin with a registry's host name; %s", show(location), fix)
	}
	if !repositoryPattern.MatchString(location.Path) {
		return fmt.Errorf("%s is not the name of a repository, which is of lower-case letters and digits; %s", show(location), fix)
	}
	return nil
}

// show returns a location for people. What follows ? is left out, as it may be a secret.
func show(location *url.URL) string {
	shown := *location
	shown.User, shown.Fragment, shown.RawFragment = nil, "", ""
	if shown.RawQuery != "" {
		shown.RawQuery = "..."
	}
	return shown.String()
}

// String returns the reference without what may be a secret, for logs and errors.
func (r Reference) String() string { return show(r.location) + "@" + r.digest }
