package redact

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	userData := "#cloud-config\nusers:\n- name: core\n  passwd: \"pa\\ss word\"\n"
	cases := map[string]struct {
		sensitive []string
		text      string
		want      string
	}{
		"a text without secrets stays": {
			sensitive: []string{"hunter22"}, text: "no such image", want: "no such image",
		},
		"a secret in the middle": {
			sensitive: []string{"hunter22"}, text: "login with hunter22 failed", want: "login with (sensitive) failed",
		},
		"a secret as base64": {
			sensitive: []string{"hunter22"},
			text:      "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("hunter22")),
			want:      "Authorization: Basic (sensitive)",
		},
		"a secret in a URL": {
			sensitive: []string{"hunt er/22"}, text: "GET https://u:hunt%20er%2F22@host", want: "GET https://u:(sensitive)@host",
		},
		"a secret in a quoted string": {
			sensitive: []string{`hun"ter\22`}, text: `value = "hun\"ter\\22"`, want: `value = "(sensitive)"`,
		},
		"a text of several lines, whole": {
			sensitive: []string{userData}, text: "got <" + userData + ">", want: "got <(sensitive)>",
		},
		"a text of several lines, escaped": {
			sensitive: []string{userData}, text: `got "` + quoted(userData, false) + `"`, want: `got "(sensitive)"`,
		},
		"one line of it": {
			sensitive: []string{userData}, text: "line 4: - name: core?", want: "line 4: (sensitive)?",
		},
		"what it says of a secret": {
			sensitive: []string{userData}, text: `the password pa\ss word is wrong`, want: "the password (sensitive) is wrong",
		},
		"what a file of JSON says of one": {
			sensitive: []string{"{\n  \"private_key\": \"hunter22\",\n  \"project\": \"a-project\"\n}"}, text: "hunter22 in a-project", want: "(sensitive) in a-project",
		},
		"its base64": {
			sensitive: []string{userData}, text: "UserData=" + base64.StdEncoding.EncodeToString([]byte(userData)) + "&x", want: "UserData=(sensitive)&x",
		},
		"short lines of it stay readable": {
			sensitive: []string{userData}, text: "users: none", want: "users: none",
		},
		"the longer of two secrets wins": {
			sensitive: []string{"hunter22", "hunter22-and-more"}, text: "hunter22-and-more", want: "(sensitive)",
		},
		"blank and very short strings are no secrets": {
			sensitive: []string{"", "  ", "1", "yes"}, text: "1 yes", want: "1 yes",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := New(tc.sensitive).Redact(tc.text); got != tc.want {
				t.Errorf("clean(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestRedactBeforeCutting(t *testing.T) {
	secret := strings.Repeat("s3cret", 10)
	for shift := range 2 * len(secret) {
		detail := strings.Repeat("x", maxField-shift) + secret
		got := New([]string{secret}).Shorten(detail)
		if len(got) > maxField {
			t.Fatalf("the text has %d bytes, want at most %d", len(got), maxField)
		}
		if strings.Contains(got, "s3cret") {
			t.Fatalf("half of a secret is left where the text is cut (shift %d)", shift)
		}
	}
}

func TestPathsOfSingleRunsAreRelative(t *testing.T) {
	r := New([]string{"hunter22"}).Inside("/var/lib/e+", []string{"runs", "slots", "modules"}, []string{"module"})
	for text, want := range map[string]string{
		"open /var/lib/e+/runs/5e0b-1/terraform.tfvars.json: no space left on device": "open terraform.tfvars.json: no space left on device",
		"chdir /var/lib/e+/runs/5e0b-1: not there":                                    "chdir .: not there",
		`"/var/lib/e+/runs/5e0b-1" and '/var/lib/e+/slots/3'`:                         `"." and '.'`,
		"/var/lib/e+/modules/.new-123/module/main.tf line 3":                          "main.tf line 3",
		"/var/lib/e+/modules/abc/modules.json":                                        "modules.json",
		"dial unix /var/lib/e+/slots/3/plugin1234567: connect: refused":               "dial unix a plugin's socket: connect: refused",
		"/var/lib/e+/runs/5e0b-1/secret-files/CA with hunter22":                       "secret-files/CA with (sensitive)",
		"/var/lib/e+/cli.tfrc, /var/lib/other/runs/1/x, /tmp/e+/runs":                 "/var/lib/e+/cli.tfrc, /var/lib/other/runs/1/x, /tmp/e+/runs",
	} {
		if got := r.Redact(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	cause := errors.New("at /var/lib/e+/runs/1/x")
	if err := r.Error(cause); err.Error() != "at x" || !errors.Is(err, cause) {
		t.Errorf("the error became %v", err)
	}
	if err := r.Error(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
