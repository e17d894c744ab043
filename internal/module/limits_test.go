package module_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// laughs is a document of a few lines in which each alias stands for nine of the one before.
func laughs(levels int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for level := 1; level < levels; level++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", level, level, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", level-1), 9), ", "))
	}
	return text
}

func TestADocumentIsReadInBoundedTime(t *testing.T) {
	const start = `the key "logins" of the Secret `
	for name, tc := range map[string]struct {
		document, want string
	}{
		"as many aliases as a person writes": {document: "base: &b {port: 9}\nuser: a\nother: *b\nmore: *b\n"},
		"a large number":                     {document: "user: a\nport: 1e300000000\n"},
		"aliases of aliases":                 {document: "user: a\n" + laughs(12), want: "is neither YAML nor JSON; write it as the module's README says"},
		"many values":                        {document: "user: a\nlist: [" + strings.Repeat("1,", 30_000) + "1]\n"},
		"depth":                              {document: "user: a\nlist: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
		"an alias of itself":                 {document: "user: &u [*u]\n", want: "is neither YAML nor JSON; write it as the module's README says"},
		"a Secret of 1 MiB":                  {document: `{"user":"a","list":[` + strings.Repeat("[[]],", 1<<20/5) + "1]}", want: "is longer than 262144 bytes; write it as the module's README says"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := []v1alpha1.CredentialKey{{Key: "logins", Path: []string{"user"}, Env: "USER"}}
			done := make(chan []module.CredentialFault, 1)
			go func() {
				_, _, faults := module.ReadCredentials(keys, map[string][]byte{"logins": []byte(tc.document)})
				done <- faults
			}()
			select {
			case faults := <-done:
				if got := fmt.Sprint(faults); tc.want != "" && got != "["+start+tc.want+"]" || tc.want == "" && len(faults) > 0 {
					t.Errorf("faults are %s, want %s", got, tc.want)
				}
			case <-time.After(time.Minute):
				t.Fatal("not read in a minute")
			}
		})
	}
}

func TestPartsOfADocumentAreRestricted(t *testing.T) {
	key := v1alpha1.CredentialKey{Key: "clouds", File: "CLOUDS", Parts: []v1alpha1.CredentialPart{
		{Path: []string{"clouds", "*", "auth", "url"}, Matches: []string{`https://[a-z.]+`}},
		{Path: []string{"clouds", "*", "files", "*"}, Matches: []string{`/etc/[a-z]+`, ``}},
	}}
	for name, tc := range map[string]struct {
		document, want string
	}{
		"what is accepted":          {document: "clouds: {a: {auth: {url: https://a.example}}, b: {auth: {user: u}, files: [/etc/a, '']}}"},
		"what is not restricted":    {document: "clouds: {a: {region: ../x}}"},
		"null":                      {document: "clouds: {a: {auth: {url: null}}}"},
		"JSON":                      {document: `{"clouds": {"a": {"auth": {"url": "https://a.example"}}}}`},
		"another value":             {document: "clouds: {a: {auth: {url: https://a.example}}, b: {auth: {url: http://b.example}}}", want: "a value at clouds.*.auth.url that the module does not accept"},
		"a part of a value":         {document: "clouds: {a: {auth: {url: 'https://a.example https://b'}}}", want: "a value at clouds.*.auth.url that"},
		"another type":              {document: "clouds: {a: {auth: {url: [https://a.example]}}}", want: "a value at clouds.*.auth.url that"},
		"an entry of a list":        {document: "clouds: {a: {files: [/etc/a, /var/b]}}", want: "a value at clouds.*.files.* that"},
		"a value by an alias":       {document: "x: &x {url: http://a}\nclouds: {a: {auth: *x}}", want: "a value at clouds.*.auth.url that"},
		"a value by a merge":        {document: "x: &x {url: http://a}\nclouds: {a: {auth: {<<: *x}}}", want: "a value at clouds.*.auth.url that"},
		"a field that is twice":     {document: "clouds: {a: {auth: {url: http://a, url: https://a.example}}}", want: "is neither YAML nor JSON, or has a duplicate field"},
		"what is no document":       {document: "clouds: [", want: "is neither YAML nor JSON, or has a duplicate field"},
		"what is too large to look": {document: laughs(12), want: "is neither YAML nor JSON, or has a duplicate field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, files, faults := module.ReadCredentials([]v1alpha1.CredentialKey{key}, map[string][]byte{"clouds": []byte(tc.document)})
			if got := fmt.Sprint(faults); tc.want != "" && (!strings.Contains(got, tc.want) || len(files) > 0) || tc.want == "" && len(faults) > 0 {
				t.Errorf("faults are %s, want %q", got, tc.want)
			}
		})
	}
}
