package render

import (
	"errors"
	"testing"
)

func TestErrorsSayInWhichWayAFieldIsWrong(t *testing.T) {
	from := moduleWith(t, readFile(t, validationsFile))
	tests := map[string]struct {
		fields string
		want   Fault
	}{
		"a field that is left out": {fields: `"size":null`, want: Missing},
		"a field of an element that is left out": {fields: `"disks":[{"type":"ssd"}]`,
			want: Missing},
		"the name of a Secret that is empty": {fields: `"credentialsSecret":{"name":""}`,
			want: Missing},
		"the name of a Secret that is none": {fields: `"credentialsSecret":{"name":"../c"}`},
		"another type":                      {fields: `"size":{}`},
		"a value that is not offered":       {fields: `"size":"huge"`, want: Unsupported},
		"a value of an element that is not offered": {fields: `"disks":[{"gib":1,"type":"tape"}]`,
			want: Unsupported},
		"a value that is not offered behind a guard for the object": {fields: `"placement":{"zone":"z-3"}`,
			want: Unsupported},
		"a value outside of a range": {fields: `"cpu":0`},
		"a text that does not match": {fields: `"memory":"16 GB"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Check(validationCase{fields: tc.fields}.input(t, from))
			var failed Errors
			if !errors.As(err, &failed) || len(failed) != 1 || failed[0].Fault != tc.want {
				t.Errorf("want one error with the fault %d, got %+v", tc.want, failed)
			}
		})
	}
}

func TestAFieldBesideItsGuardIsAChoice(t *testing.T) {
	guard := field{path: "a"}
	offered := field{path: "a", choice: true}
	for _, fields := range [][]field{{guard, offered}, {offered, guard}} {
		if got := deepest(fields); len(got) != 1 || !got[0].choice {
			t.Errorf("want the one for which there is a choice, got %+v", got)
		}
	}
}

func TestWarningString(t *testing.T) {
	for want, warning := range map[string]Warning{
		"a.b: it has no effect":               {Path: "a.b", Message: "it has no effect"},
		"a.b: it has no effect; leave it out": {Path: "a.b", Message: "it has no effect", Hint: "leave it out"},
	} {
		if got := warning.String(); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
