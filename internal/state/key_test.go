package state

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKeyFor(t *testing.T) {
	key := KeyFor("ns", "0b9c8d7e-6f5a-4b3c-8d1e-123456789012")
	want := Key{Namespace: "ns", Name: "tfstate-default-m0b9c8d7e6f5a4b3c8d1e123456789012"}
	if diff := cmp.Diff(want, key); diff != "" {
		t.Errorf("key differs (-want +got):\n%s", diff)
	}
	if err := key.validate(); err != nil {
		t.Errorf("the key is refused: %v", err)
	}
	if key.Suffix() != "m0b9c8d7e6f5a4b3c8d1e123456789012" || key.part(2) != want.Name+"-part-2" {
		t.Errorf("suffix %q, part %q", key.Suffix(), key.part(2))
	}
}

func TestKeyValidation(t *testing.T) {
	cases := map[string]struct {
		key  Key
		want string
	}{
		"no namespace":                   {key: Key{Name: "tfstate-default-m1"}, want: "no namespace"},
		"a name that is not Terraform's": {key: Key{Namespace: "n", Name: "other"}, want: "tfstate-default-"},
		"no suffix":                      {key: Key{Namespace: "n", Name: "tfstate-default-"}, want: "1 to 63"},
		"a suffix too long for a label": {key: Key{Namespace: "n", Name: "tfstate-default-" + strings.Repeat("a", 64)},
			want: "1 to 63"},
		"a suffix that Terraform takes apart": {key: Key{Namespace: "n", Name: "tfstate-default-worker-1"},
			want: "for a part"},
		"a name that no Secret may have": {key: Key{Namespace: "n", Name: "tfstate-default-m_1"}, want: "RFC 1123"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.key.validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestLockSurvivesItsAnnotation(t *testing.T) {
	lock := Lock{Owner: "pod-1/abc", Run: "r1", Operation: "create",
		Since: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)}
	text, err := lock.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeLock(map[string]string{annotationLock: text})
	if err != nil || !got.Equal(lock) {
		t.Errorf("got %v (%v), want %v", got, err, lock)
	}
	if free, err := decodeLock(nil); free != nil || err != nil {
		t.Errorf("no annotation gives %v, %v, want a free lock", free, err)
	}
	if broken, err := decodeLock(map[string]string{annotationLock: "{"}); err == nil {
		t.Errorf("a broken annotation gives %v, want an error", broken)
	}
	for _, other := range []Lock{
		{Owner: "x", Run: lock.Run, Operation: lock.Operation, Since: lock.Since},
		{Owner: lock.Owner, Run: "x", Operation: lock.Operation, Since: lock.Since},
		{Owner: lock.Owner, Run: lock.Run, Operation: "x", Since: lock.Since},
		{Owner: lock.Owner, Run: lock.Run, Operation: lock.Operation, Since: lock.Since.Add(1)},
	} {
		if lock.Equal(other) {
			t.Errorf("%v equals %v", lock, other)
		}
	}
}
