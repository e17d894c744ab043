package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestTimeoutOf(t *testing.T) {
	value := func(text string) *string { return &text }
	tcs := map[string]struct {
		value     *string
		want      time.Duration
		wantError bool
	}{
		"no annotation is no deadline": {nil, 0, false},
		"minutes":                      {value("30m"), 30 * time.Minute, false},
		"mixed units":                  {value("1h30m"), 90 * time.Minute, false},
		"a number without a unit":      {value("30"), 0, true},
		"nothing":                      {value(""), 0, true},
		"zero would end every drain":   {value("0s"), 0, true},
		"less than zero":               {value("-1m"), 0, true},
		"words":                        {value("soon"), 0, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine()
			if tc.value != nil {
				machine.Annotations = map[string]string{TimeoutAnnotation: *tc.value}
			}
			got, err := timeoutOf(machine)
			if got != tc.want || (err != nil) != tc.wantError {
				t.Errorf("got %v, %v; want %v, an error: %v", got, err, tc.want, tc.wantError)
			}
			if err == nil {
				return
			}
			for _, want := range []string{TimeoutAnnotation, *tc.value, `"30m"`} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error must say what, where and the fix; it lacks %q: %v", want, err)
				}
			}
		})
	}
}

func TestStartOf(t *testing.T) {
	tcs := map[string]struct {
		value string
		want  bool
	}{
		"not recorded":                        {"", false},
		"recorded":                            {now.Add(-time.Hour).Format(time.RFC3339), true},
		"recorded this second":                {now.Format(time.RFC3339), true},
		"nonsense is recorded anew":           {"yesterday", false},
		"a time to come would not be a start": {now.Add(time.Hour).Format(time.RFC3339), false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine(builder.WithAnnotations(map[string]string{StartedAnnotation: tc.value}))
			if _, got := startOf(machine, now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
