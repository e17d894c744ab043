package source

import (
	"strings"
	"testing"
)

const (
	digits  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	allowed = "@sha256:" + digits
)

func TestParseReference(t *testing.T) {
	cases := map[string]struct {
		text, want string
	}{
		"an artifact":                          {"oci://registry.example.com/team/acme" + allowed, ""},
		"an artifact with a tag":               {"oci://registry.example.com:5000/acme:v1.2.3" + allowed, ""},
		"an artifact on this machine":          {"oci://localhost/acme" + allowed, ""},
		"an archive on a web server":           {"https://example.com/releases/acme.tar.gz" + allowed, ""},
		"a URL with an @ in it":                {"https://example.com/@team/acme.tar.gz" + allowed, ""},
		"a URL whose parameters may be secret": {"https://example.com/acme.tar.gz?token=hunter2" + allowed, "https://example.com/acme.tar.gz?..." + allowed},
		"a file":                               {"file:///srv/modules/acme.tar.gz" + allowed, ""},
		"a file with a space in its name":      {"file:///srv/my%20modules/a@b.tar.gz" + allowed, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = tc.text
			}
			got, err := ParseReference(tc.text)
			if err != nil || got.String() != tc.want || got.digest != allowed[1:] {
				t.Errorf("got %v, %v; want %s", got, err, tc.want)
			}
			if !IsReference(tc.text) {
				t.Error("it does not pass for a reference")
			}
		})
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	cases := map[string]struct {
		text, want string
	}{
		"nothing":                                {"", "not a reference to a module; use oci://registry/repository@sha256:..."},
		"a folder":                               {"modules/acme", "not a reference"},
		"an image as others write it":            {"registry.example.com/acme" + allowed, "not a reference"},
		"a place without TLS":                    {"http://example.com/acme.tar.gz" + allowed, "not a reference"},
		"what is no URL":                         {"https://exa mple.com/%zz" + allowed, "not a reference"},
		"an artifact that a tag allows":          {"oci://registry.example.com/acme:v1", "oci://registry.example.com/acme:v1 has no digest; add @sha256:"},
		"a file that nothing allows":             {"file:///srv/acme.tar.gz", "has no digest"},
		"a URL that nothing allows":              {"https://example.com/@team/acme.tar.gz", "has no digest"},
		"a digest that was cut off":              {"oci://registry.example.com/acme@sha256:0123", `has the digest "sha256:0123", which is not sha256: and 64 hexadecimal digits`},
		"a digest in capitals":                   {"oci://registry.example.com/acme@sha256:" + strings.ToUpper(digits), "copy it as it was printed"},
		"a digest of another kind":               {"oci://registry.example.com/acme@md5:" + digits[:32], "which is not sha256:"},
		"a registry without a host name":         {"oci://team/acme" + allowed, "does not start with a registry's host name; use oci://registry/repository"},
		"a registry without a repository":        {"oci://registry.example.com" + allowed, "has no repository"},
		"a repository in capitals":               {"oci://registry.example.com/Acme" + allowed, "is not a valid name of a repository"},
		"a repository with parameters":           {"oci://registry.example.com/acme?x=y" + allowed, "contains a query (?); remove it"},
		"a repository that leads elsewhere":      {"oci://registry.example.com/../acme" + allowed, "is not a valid name of a repository"},
		"a URL without a file":                   {"https://example.com/" + allowed, "names no file"},
		"a URL with a part of a page":            {"https://example.com/acme.tar.gz#top" + allowed, "contains a fragment (#)"},
		"a path that depends on where one is":    {"file://acme.tar.gz" + allowed, "is not an absolute path; use three slashes"},
		"a file of another machine":              {"file://host/srv/acme.tar.gz" + allowed, "is not an absolute path"},
		"a user and a password of a web server":  {"https://me:hunter2@example.com/acme.tar.gz" + allowed, "the reference to example.com contains a user"},
		"a user and a password of a registry":    {"oci://me:hunter2@registry.example.com/acme" + allowed, "registries use the credentials in Docker's configuration"},
		"a secret parameter, and no digest":      {"https://example.com/acme.tar.gz?token=hunter2", "https://example.com/acme.tar.gz?... has no digest"},
		"a password in what is no URL otherwise": {"https://me:hunter2@exa mple.com/" + allowed, "not a reference"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReference(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want %q", got, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows the secret", err)
			}
		})
	}
}
