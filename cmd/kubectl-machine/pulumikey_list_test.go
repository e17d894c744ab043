package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/printing"
)

func TestKeyList(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made, replaced := metav1.NewTime(now.Add(-48*time.Hour)), metav1.NewTime(now.Add(-time.Hour))
	list := &keyList{Now: now, Items: []encryptionKey{
		{ID: "b", Current: true, Checkpoints: 3, Made: &replaced}, {ID: "a", Checkpoints: 1, Versions: 2, Made: &made, Replaced: &replaced}, {ID: "c", Missing: true, Checkpoints: 1},
	}}
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"a table": {want: "KEY   STATUS     CHECKPOINTS   VERSIONS   MADE   REPLACED\n" +
			"b     Current    3             0          60m    -\n" +
			"a     Replaced   1             2          2d     60m\n" +
			"c     Missing    1             0          -      -\n"},
		"names": {arguments: []string{"-o", "name"}, want: "key/b\nkey/a\nkey/c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := printing.With(list, tc.arguments...)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v; printed (-want +got):\n%s", err, diff)
			}
		})
	}
}
