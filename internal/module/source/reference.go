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
	// repositoryPattern is what the OCI specification allows; the registry library also accepts dots
	// that lead elsewhere.
	repositoryPattern = regexp.MustCompile(`^(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$`)
)

// Reference is a location and the digest of its content.
type Reference struct {
	location *url.URL
	digest   string
}

// IsReference reports whether a text starts like a reference.
func IsReference(text string) bool {
	for _, scheme := range []string{schemeFile, schemeHTTPS, schemeOCI} {
		if strings.HasPrefix(text, scheme+"://") {
			return true
		}
	}
	return false
}

// ParseReference parses a reference: oci://registry/repository[:tag]@sha256:...,
// https://host/path@sha256:... or file:///path@sha256:... The digest is that of the artifact's
// manifest, or of the archive. Tags are ignored.
func ParseReference(text string) (Reference, error) {
	location, digest := cut(text)
	parsed, err := parseLocation(location)
	if err != nil {
		return Reference{}, err
	}
	switch {
	case digest == "":
		return Reference{},
			fmt.Errorf("%s has no digest; add @sha256: and the digest that 'kubectl machine module push' or 'pack' printed",
				show(parsed))
	case !digestPattern.MatchString(digest):
		return Reference{},
			fmt.Errorf("%s has the digest %q, which is not sha256: and 64 hexadecimal digits; copy it as it was printed",
				show(parsed), digest)
	}
	return Reference{location: parsed, digest: digest}, nil
}

// cut splits off the digest, whatever it is.
func cut(text string) (location, digest string) {
	if at := strings.LastIndex(text, "@"); at >= 0 && !strings.Contains(text[at:], "/") {
		return text[:at], text[at+1:]
	}
	return text, ""
}

// parseLocation parses a reference without its digest. Errors show only parts that cannot be
// secret.
func parseLocation(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || !IsReference(text) { // an error of url.Parse contains the whole text
		return nil, fmt.Errorf("not a reference to a module; use %s", forms)
	}
	switch {
	case parsed.User != nil:
		return nil,
			fmt.Errorf("the reference to %s contains a user, which would appear in logs; remove it, registries use the credentials in Docker's configuration",
				parsed.Host)
	case parsed.Fragment != "":
		return nil, fmt.Errorf("%s contains a fragment (#); remove it", show(parsed))
	case parsed.RawQuery != "" && parsed.Scheme != schemeHTTPS:
		return nil, fmt.Errorf("%s contains a query (?); remove it", show(parsed))
	case parsed.Scheme == schemeOCI:
		return parsed, checkRepository(parsed)
	case parsed.Scheme == schemeFile && (parsed.Host != "" || !filepath.IsAbs(parsed.Path)):
		return nil, fmt.Errorf("%s is not an absolute path; use three slashes, as in file:///folder/module.tar.gz",
			show(parsed))
	case parsed.Scheme == schemeHTTPS && (parsed.Host == "" || strings.Trim(parsed.Path, "/") == ""):
		return nil, fmt.Errorf("%s names no file; use https://host/module.tar.gz", show(parsed))
	}
	return parsed, nil
}

// checkRepository checks that a location is in a registry. The registry is required: there is no
// default.
func checkRepository(location *url.URL) error {
	const fix = "use oci://registry/repository or oci://registry/repository:tag"
	if location.Host == "" || strings.Trim(location.Path, "/") == "" {
		return fmt.Errorf("%s has no repository; %s", show(location), fix)
	}
	if !strings.ContainsAny(location.Host, ".:") && location.Host != "localhost" {
		return fmt.Errorf("%s does not start with a registry's host name; %s", show(location), fix)
	}
	if !repositoryPattern.MatchString(location.Path) {
		return fmt.Errorf("%s is not a valid name of a repository, which has only lower-case letters and digits; %s",
			show(location), fix)
	}
	return nil
}

// show returns a location for people, without the query, which may be secret.
func show(location *url.URL) string {
	shown := *location
	shown.User, shown.Fragment, shown.RawFragment = nil, "", ""
	if shown.RawQuery != "" {
		shown.RawQuery = "..."
	}
	return shown.String()
}

// String returns the reference without parts that may be secret, for logs and errors.
func (r Reference) String() string { return show(r.location) + "@" + r.digest }
