package pulumi

import (
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	key, err := NewKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.seal("#cloud-config")
	if err != nil || strings.Contains(sealed, "cloud") {
		t.Fatalf("sealed is %q, %v, want what cannot be read", sealed, err)
	}
	again, err := ReadKey(t.Context(), key.Passphrase(), key.Salt())
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := again.open(sealed); err != nil || opened != "#cloud-config" {
		t.Errorf("the key that was read opens %q, %v, want what the first one sealed", opened, err)
	}
	for name, tc := range map[string]struct{ passphrase, salt string }{
		"no passphrase":          {"", key.Salt()},
		"another passphrase":     {"hunter22", key.Salt()},
		"no salt":                {key.Passphrase(), ""},
		"a salt that is no text": {key.Passphrase(), "v1:%%%:x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadKey(t.Context(), tc.passphrase, tc.salt)
			if err == nil {
				t.Fatal("it is read, want an error: checkpoints would be written that nobody reads")
			}
			if strings.Contains(err.Error(), key.Passphrase()) {
				t.Errorf("the error shows the passphrase: %v", err)
			}
		})
	}
}
