package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/test/printing"
)

func TestKeyListTable(t *testing.T) {
	made, replaced := ago(48*time.Hour), ago(time.Hour)
	list := &KeyList{Now: now, Items: []EncryptionKey{
		{ID: "b", Current: true, Checkpoints: 3, Made: &replaced}, {ID: "a", Checkpoints: 1, Versions: 2, Made: &made, Replaced: &replaced}, {ID: "c", Missing: true, Checkpoints: 1},
	}}
	want := "KEY   STATUS     CHECKPOINTS   VERSIONS   MADE   REPLACED\n" +
		"b     Current    3             0          60m    -\n" +
		"a     Replaced   1             2          2d     60m\n" +
		"c     Missing    1             0          -      -\n"
	if diff := cmp.Diff(want, printing.As(t, "table", list)); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
