package webhooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// checkWith returns a MachineHealthCheck with this spec and these annotations.
func checkWith(t *testing.T, spec string, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	check := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	check.SetAnnotations(annotations)
	return check
}

// conditions is what a spec needs at least.
const conditions = "selector: {}\nunhealthyConditions: [{type: Ready, status: 'False', timeout: 5m}]\n"

const (
	exempt    = "machine-iac.io/exempt-starting-machines"
	inFlight  = "machine-iac.io/max-remediations-in-flight"
	badFlight = `metadata.annotations[machine-iac.io/max-remediations-in-flight]: Invalid value: "some": must be a number from 1 ` +
		`or a percentage from 1% to 100%, such as 3 or 40%`
)

func TestValidateHealthCheck(t *testing.T) {
	const mostFix = "; use a number such as 3, or a percentage from 0% to 100%"
	tests := map[string]struct {
		spec         string
		annotations  map[string]string
		want         []string
		wantWarnings []string
	}{
		"the least":  {spec: conditions},
		"everything": {spec: conditions + "maxUnhealthy: 40%\nnodeStartupTimeout: 1h30m", annotations: map[string]string{exempt: "true", inFlight: "40%"}},
		"a number of Machines, and no startup timeout": {
			spec: conditions + "maxUnhealthy: 3\nnodeStartupTimeout: '0'", annotations: map[string]string{exempt: "false", inFlight: "1"},
		},
		"nothing that is unhealthy": {
			spec: "selector: {}",
			want: []string{"spec.unhealthyConditions: Required value: name at least one condition of Nodes, with type, status and timeout"},
		},
		"an empty condition lacks all three": {
			spec: "selector: {}\nunhealthyConditions: [{}]",
			want: []string{
				"spec.unhealthyConditions[0].type: Required value: name a condition of Nodes, such as Ready",
				`spec.unhealthyConditions[0].status: Required value: use "False", "Unknown" or "True"`,
				`spec.unhealthyConditions[0].timeout: Invalid value: "": must be a duration from 0 to 292 years; use a duration such as 300s`,
			},
		},
		"a timeout that passes the schema and that no client can read": {
			spec: "selector: {}\nunhealthyConditions: [{type: Ready, status: 'False', timeout: 99999999h}]",
			want: []string{`spec.unhealthyConditions[0].timeout: Invalid value: "99999999h": must be a duration from 0 to 292 years; use a duration such as 300s`},
		},
		"a status that no condition ever has": {
			spec: "selector: {}\nunhealthyConditions: [{type: Ready, status: 'false', timeout: 5m}]",
			wantWarnings: []string{`spec.unhealthyConditions[0].status: Invalid value: "false": no condition has this status; ` +
				`use "False", "Unknown" or "True"`},
		},
		"a startup timeout that passes the schema and is none": {
			spec: conditions + "nodeStartupTimeout: 0x",
			want: []string{`spec.nodeStartupTimeout: Invalid value: "0x": must be a duration from 0 to 292 years; use a duration such as 10m, ` +
				`or "0" for no timeout`},
		},
		"a startup timeout that passes the schema and is negative": {
			spec: conditions + "nodeStartupTimeout: -10m",
			want: []string{`spec.nodeStartupTimeout: Invalid value: "-10m": must not be negative; use a duration such as 10m, ` +
				`or "0" for no timeout`},
		},
		"more than all may be unhealthy": {
			spec: conditions + "maxUnhealthy: 101%",
			want: []string{`spec.maxUnhealthy: Invalid value: "101%": must be a number from 0 or a percentage` + mostFix},
		},
		"less than none may be unhealthy": {
			spec: conditions + "maxUnhealthy: -1",
			want: []string{`spec.maxUnhealthy: Invalid value: -1: must be a number from 0 or a percentage` + mostFix},
		},
		"a number that the API's type cannot hold": {
			spec: conditions + "maxUnhealthy: 2147483648",
			want: []string{`spec.maxUnhealthy: Invalid value: 2147483648: must not exceed the largest number of Machines` + mostFix},
		},
		"the same as a string": {
			spec: conditions + "maxUnhealthy: '2147483648'",
			want: []string{`spec.maxUnhealthy: Invalid value: "2147483648": must not exceed the largest number of Machines` + mostFix},
		},
		"a selector that is a riddle": {
			spec: "selector: {matchExpressions: [{key: a, operator: In}]}\n" + strings.TrimPrefix(conditions, "selector: {}\n"),
			want: []string{`spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"In"}]}: values: Invalid value: null: ` +
				`for 'in', 'notin' operators, values set can't be empty`},
		},
		"a field of another kind": {
			spec: conditions + "nodeStartupTimeout: 5",
			want: []string{"spec: Invalid value: reading it: json: cannot unmarshal number into Go struct field " +
				"healthCheckSpec.nodeStartupTimeout of type string"},
		},
		"annotations that nobody can read": {
			spec: conditions, annotations: map[string]string{exempt: "yes", inFlight: "some"},
			want: []string{
				`metadata.annotations[machine-iac.io/exempt-starting-machines]: Unsupported value: "yes": supported values: "true", "false"`,
				badFlight,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := validateHealthCheck(checkWith(t, tc.spec, tc.annotations))
			if diff := cmp.Diff(tc.want, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedHealthCheck(t *testing.T) {
	wrong := map[string]string{inFlight: "some"}
	leave := func(check *unstructured.Unstructured) *unstructured.Unstructured {
		check.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2001-09-09T01:46:40Z"
		return check
	}
	tests := map[string]struct {
		before, check *unstructured.Unstructured
		want          []string
		wantWarnings  []string
	}{
		"what was wrong before is a warning": {
			before: checkWith(t, conditions, wrong), check: checkWith(t, conditions+"maxUnhealthy: 3", wrong), wantWarnings: []string{badFlight + asBefore},
		},
		"what becomes wrong is refused": {
			before: checkWith(t, conditions, nil), check: checkWith(t, conditions, wrong), want: []string{badFlight},
		},
		"one that is deleted loses its finalizers": {
			before: leave(checkWith(t, "selector: {}", wrong)), check: leave(checkWith(t, "selector: {}", map[string]string{inFlight: "x"})),
		},
		"one that is deleted may not become worse": {
			before: leave(checkWith(t, conditions, wrong)), check: leave(checkWith(t, conditions+"maxUnhealthy: 101%", wrong)),
			want: []string{`spec.maxUnhealthy: Invalid value: "101%": must be a number from 0 or a percentage; ` +
				`use a number such as 3, or a percentage from 0% to 100%`},
			wantWarnings: []string{badFlight + asBefore},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := changedHealthCheck(tc.before, tc.check)
			if diff := cmp.Diff(tc.want, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
