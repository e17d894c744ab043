package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// documents are secrets with hunter22s in the usual formats.
var documents = map[string]string{
	"JSON on one line":          `{"a":[{"tenant":"hunter22s","pin":1234,"on":true}]}`,
	"JSON of two fields":        `{"tenant":"hunter22s","tenant":"other"}`,
	"JSON with a surrogate":     `{"face":"\ud83d\ude00","tenant":"hunter22s"}`,
	"indented JSON":             "{\n\t\"tenant\": \"hunter22s\",\n\t\"a\": 1\n}",
	"YAML":                      "a:\n- tenant: hunter22s\n  b: 1\n",
	"YAML of several documents": "a: 1\n---\nb: [x, hunter22s]\n",
	"cloud-config":              "#cloud-config\nwrite_files:\n- path: /etc/x\n  content: |\n    [api]\n    tenant = hunter22s\n",
	"base64 in cloud-config":    "#cloud-config\nwrite_files:\n- encoding: b64\n  content: " + base64.StdEncoding.EncodeToString([]byte("tenant: hunter22s\n")) + "\n",
	"gzip in cloud-config":      "#cloud-config\nwrite_files:\n- encoding: gz+b64\n  content: " + base64.StdEncoding.EncodeToString(zipped("tenant: hunter22s\n")) + "\n",
	"Ignition, percent":         `{"storage":{"files":[{"contents":{"source":"data:,tenant%3A%20hunter22s%0A"}}]}}`,
	"Ignition, base64":          `{"storage":{"files":[{"contents":{"source":"data:;base64,` + base64.StdEncoding.EncodeToString([]byte("hunter22s")) + `"}}]}}`,
	"kubeconfig":                "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {token: hunter22s}\n",
	"clouds.yaml":               "clouds:\n  openstack:\n    auth:\n      auth_url: https://cloud.example\n      password: hunter22s\n    region_name: one\n",
	"INI":                       "[default]\naws_access_key_id = AKIA\naws_secret_access_key = hunter22s\n",
	"a shell's variables":       "export OS_USERNAME=a\nexport OS_PASSWORD=\"hunter22s\"\n",
	"JSON in a string of YAML":  "config: '{\"tenant\": \"hunter22s\"}'\n",
	"an address":                "http://user:hunter22s@proxy.example:3128",
	"a list":                    `["hunter22s", 1]`,
	"half of a JSON":            "{\n  \"tenant\": \"hunter22s\",\n  \"a\": ${b}\n",
}

func zipped(text string) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write([]byte(text)) // a buffer never fails
	_ = writer.Close()
	return out.Bytes()
}

func TestLeavesOfDocumentsAreMasked(t *testing.T) {
	for name, secret := range documents {
		t.Run(name, func(t *testing.T) {
			if got := New([]string{secret}).Redact("Expected a string, got hunter22s!"); got != "Expected a string, got (sensitive)!" {
				t.Errorf("it is printed as %q", got)
			}
		})
	}
}

func TestSecretsAreMaskedHoweverTheyAreEncoded(t *testing.T) {
	const leaf = `hun<ter>&22 "é\s`
	raw, err := json.Marshal(map[string]string{"tenant": leaf})
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := json.Marshal(leaf)
	if err != nil {
		t.Fatal(err)
	}
	r := New([]string{string(raw)})
	shapes := map[string]string{
		"plain": leaf, "%q": strconv.Quote(leaf), "JSON": string(marshalled), "JSON in JSON": strconv.Quote(quoted(leaf, false)), "HTML": html.EscapeString(leaf),
		"a query": url.QueryEscape(leaf), "a path": url.PathEscape(leaf), "a query in small letters": lowerEscapes(url.QueryEscape(leaf)),
		"base64": base64.StdEncoding.EncodeToString([]byte(leaf)), "base64 for addresses": base64.RawURLEncoding.EncodeToString([]byte(leaf)),
	}
	for name, shape := range shapes {
		if got := r.Redact("a " + shape + " b"); strings.Contains(got, "ter") || !strings.Contains(got, Redacted) || len(got) > 24 {
			t.Errorf("%s: %q became %q", name, shape, got)
		}
	}
	for before := range 6 {
		longer := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + leaf + "yyyy"))
		got := r.Redact(longer)
		if left := strings.ReplaceAll(got, Redacted, ""); len(left) > len(longer)-len(leaf)*4/3+3 {
			t.Errorf("in base64 of a longer text, behind %d: %q became %q", before, longer, got)
		}
	}
}

func TestPlainWordsAndPlacesStayReadable(t *testing.T) {
	r := New([]string{
		"true", "default", "Root", "kubernetes",
		"#cloud-config\nusers: [{name: ubuntu, shell: /bin/bash}]\nenabled: true\nsize: 1234567\nmode: always\n",
		`{"type":"service_account","project_id":"my-project","private_key":"hunter22s"}`,
		"clouds: {openstack: {auth: {auth_url: 'https://cloud.example'}, region_name: region-one}}",
	})
	for _, text := range []string{
		"root is true by default on kubernetes", "image ubuntu is not enabled, as always", "size 1234567 is too large", "no such project my-project",
		"https://cloud.example: no such host", "region region-one has no capacity", "the key private_key of the service_account",
	} {
		if got := r.Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestAPartOfALongSecretIsMasked(t *testing.T) {
	var secret strings.Builder
	for i := range 400 {
		fmt.Fprintf(&secret, "%06xé", i*7919)
	}
	text := secret.String()
	r := New([]string{text})
	for _, part := range []string{text, text[:1000], text[700:], base64.StdEncoding.EncodeToString([]byte(text))[:1000]} {
		got := strings.ReplaceAll(r.Redact(part), Redacted, "")
		if len(got) > 2*minPiece || !strings.Contains(r.Redact(part), Redacted) {
			t.Errorf("of %d bytes, %d stay: %q", len(part), len(got), got)
		}
	}
}

func TestOverlappingSecretsLeaveNothing(t *testing.T) {
	if got := New([]string{"abcdefgh", "fghijklm", "ijkl"}).Redact("-abcdefghijklm-"); got != "-(sensitive)-" {
		t.Errorf("it became %q", got)
	}
}

func TestWithheldTexts(t *testing.T) {
	r := New([]string{"hunter22s", `{"tenant":"s3cr3t","pin":1234,"a":"longer-one"}`}).About([]string{"user_data"})
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"an error that names one secret":  {"login with hunter22s failed", false},
		"one that names many":             {"hunter22s, s3cr3t, longer-one and hunter22s", true},
		"a map as Go prints it":           {"Expected a string, got map[pin:1234]", true},
		"a type of Go":                    {"cannot unmarshal string into map[string]interface {}", false},
		"an input of Pulumi":              {"expected an object. Examine values at 'this.userData'.", true},
		"another input of Pulumi":         {"expected an object. Examine values at 'this.imageId'.", false},
		"configuration of Pulumi":         {"Error registering config [user_data]: no", true},
		"a variable of HCL":               {"  user_data = base64encode(var.user_data)", true},
		"a variable with a longer name":   {"  x = var.user_data_size", false},
		"an error without any":            {"no such image", false},
		"an error of a cloud, as it says": {`got 403 instead: {"forbidden": {"code": 403, "message": "Quota exceeded"}}`, false},
	} {
		if got := r.Withholds(tc.text); got != tc.want {
			t.Errorf("%s: withheld: %t, want %t", name, got, tc.want)
		}
	}
	if New([]string{"hunter22s"}).Withholds("got map[a:1]") {
		t.Error("a map is withheld although no secret is a document")
	}
}

func TestASecretWithTooManyPartsHasEverythingWithheld(t *testing.T) {
	var secret strings.Builder
	for i := range 2 * maxParts {
		fmt.Fprintf(&secret, "line-%06d\n", i)
	}
	r := New([]string{secret.String()})
	if !r.Withholds("no such image") {
		t.Error("a text is shown although not all of the secret is searched for")
	}
	if got := r.Redact("line-000001 and so on"); strings.Contains(got, "line") {
		t.Errorf("what is searched for is not masked: %q", got)
	}
}

func TestBrokenSecretsAreNoFault(t *testing.T) {
	for _, secret := range []string{
		strings.Repeat("[", 5000), strings.Repeat("{a: ", 5000), "a: &a [*a, *a]\n", "\x80\x80\x80\x80" + strings.Repeat("\x80", 4096), "data:", "data:;base64,", "data:,%zz",
		"a: !!binary x\n", "a:\n\t- b\n", "%YAML 9.9\n---\na: b\n", "\x1f\x8b", base64.StdEncoding.EncodeToString([]byte("\x1f\x8b broken")), "key = ", "= value",
	} {
		if got := New([]string{secret}).Redact("some text"); got != "some text" {
			t.Errorf("with %.20q it became %q", secret, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, secret := range documents {
		f.Add(secret, "Expected a string, got hunter22s!")
	}
	f.Fuzz(func(t *testing.T, secret, text string) {
		r := New([]string{secret})
		trimmed := strings.TrimSpace(secret)
		if len(trimmed) < minSensitive || plainWords[strings.ToLower(trimmed)] || len(trimmed) > minPiece || strings.Contains(Redacted, trimmed) {
			r.Redact(text)
			return
		}
		around := Redacted + "<>"
		if got := r.Redact("<" + trimmed + ">" + text); strings.Contains(got, trimmed) && !strings.Contains(around, trimmed) && !overlaps(got, trimmed) {
			t.Errorf("%q stays in %q", trimmed, got)
		}
	})
}

// overlaps reports whether a secret is in a text only together with what stands for secrets.
func overlaps(text, secret string) bool {
	return !strings.Contains(strings.ReplaceAll(text, Redacted, "\x00"), secret)
}
