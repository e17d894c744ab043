package module

import (
	"testing"
)

// The IDs are examples of publications on their form: those of Tal Be'ery and of Aidan Steele, and that of AWS's documentation, whose key is
// of the older form.
func TestAccountsOfAWS(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a session's":              {text: "ASIAQNZGKIQY56JQ7WML", want: "029608264753"},
		"another session's":        {text: "ASIAY34FZKBOKMUTVV7A\n", want: "609629065308"},
		"of the older form":        {text: "AKIAIOSFODNN7EXAMPLE"},
		"no key":                   {text: "test"},
		"no base32":                {text: "AKIA1111111111111111"},
		"more than an account has": {text: "AKIA7777777777777777"},
		"a file with a key":        {text: "[default]\naws_access_key_id = ASIAQNZGKIQY56JQ7WML\naws_secret_access_key = x=y\n", want: "029608264753"},
		"a file with a role":       {text: "# x\n[profile default]\nrole_arn = arn:aws:iam::123456789012:role/a\naws_access_key_id=ASIAQNZGKIQY56JQ7WML\n", want: "123456789012"},
		"a role in another part":   {text: "[default]\nrole_arn=arn:aws-us-gov:iam::123456789012:role/path/a\n", want: "123456789012"},
		"a role that can't be read is not the key's": {text: "[default]\nrole_arn=a\naws_access_key_id=ASIAQNZGKIQY56JQ7WML\n"},
		"another profile":                     {text: "[other]\naws_access_key_id=ASIAQNZGKIQY56JQ7WML\n"},
		"a line that is a remark":             {text: "[default]\n;aws_access_key_id=ASIAQNZGKIQY56JQ7WML\n# role_arn=arn:aws:iam::123456789012:role/a\n"},
		"the key of the file comes after it":  {text: "[other]\na=b\n[default]\naws_access_key_id=ASIAY34FZKBOKMUTVV7A", want: "609629065308"},
		"a file without a section has one":    {text: "aws_access_key_id=ASIAY34FZKBOKMUTVV7A", want: "609629065308"},
		"nothing":                             {},
		"another key where this one is empty": {text: " "},
	} {
		t.Run(name, func(t *testing.T) {
			reader := placeReader{module: &Module{}, credentials: map[string][]byte{"empty": nil, "key": []byte(tc.text)}}
			if got := reader.awsAccount([]string{"none", "empty", "key"}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
