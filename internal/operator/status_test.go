package operator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

var (
	began   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	errAway = errors.New("the API server is away")
)

// after plays syncs at the given minutes, and returns the status after the last.
func after(before configv1.ClusterOperatorStatus, version string, syncs map[int]outcome) configv1.ClusterOperatorStatus {
	for minute := range 600 {
		if one, ok := syncs[minute]; ok {
			before = next(before, version, nil, began.Add(time.Duration(minute)*time.Minute), one)
		}
	}
	return before
}

func TestNext(t *testing.T) {
	running := after(configv1.ClusterOperatorStatus{}, "1.0.0", map[int]outcome{0: {rolledOut: true}})
	missing := &missingCRDsError{[]string{"machines.machine.openshift.io"}}
	for name, test := range map[string]struct {
		before                           configv1.ClusterOperatorStatus
		version                          string
		syncs                            map[int]outcome
		available, progressing, degraded string
		reported, message                string
	}{
		"the first sync":              {version: "1.0.0", syncs: map[int]outcome{0: {}}, available: "False", progressing: "True", degraded: "False"},
		"a first failure":             {version: "1.0.0", syncs: map[int]outcome{0: {failure: errAway}}, available: "False", progressing: "True", degraded: "False"},
		"rolled out":                  {version: "1.0.0", syncs: map[int]outcome{0: {}, 4: {rolledOut: true}}, available: "True", progressing: "False", degraded: "False", reported: "1.0.0"},
		"a failure when all was well": {before: running, version: "1.0.0", syncs: map[int]outcome{9: {failure: errAway}}, available: "True", progressing: "False", degraded: "True", reported: "1.0.0", message: "Failed to resync for operator: 1.0.0 because the API server is away"},
		"well again":                  {before: running, version: "1.0.0", syncs: map[int]outcome{9: {failure: errAway}, 10: {rolledOut: true}}, available: "True", progressing: "False", degraded: "False", reported: "1.0.0"},
		"Pods that are replaced":      {before: running, version: "1.0.0", syncs: map[int]outcome{9: {}}, available: "True", progressing: "False", degraded: "False", reported: "1.0.0"},
		"a downgrade": {
			before: running, version: "0.9.0", syncs: map[int]outcome{9: {failure: &downgradeError{"1.0.0 was here"}}},
			available: "True", progressing: "False", degraded: "True", reported: "1.0.0", message: "1.0.0 was here",
		},
		"Pods that crash": {
			before: running, version: "1.0.0", syncs: map[int]outcome{9: {failure: &crashError{"no such flag"}}},
			available: "True", progressing: "False", degraded: "True", reported: "1.0.0", message: "no such flag",
		},
		"Pods that crash in an upgrade": {
			before: running, version: "1.1.0", syncs: map[int]outcome{9: {}, 10: {failure: &crashError{"no such flag"}}},
			available: "True", progressing: "False", degraded: "True", reported: "1.0.0", message: "no such flag",
		},
		"Pods that start again": {
			before: running, version: "1.1.0", syncs: map[int]outcome{9: {}, 10: {failure: &crashError{"no such flag"}}, 11: {}},
			available: "True", progressing: "True", degraded: "False", reported: "1.0.0",
		},
		"a CRD that was deleted": {
			before: running, version: "1.0.0", syncs: map[int]outcome{9: {failure: missing}},
			available: "False", progressing: "False", degraded: "True", reported: "1.0.0", message: missing.Error(),
		},
		"a CRD that is back": {
			before: running, version: "1.0.0", syncs: map[int]outcome{9: {failure: missing}, 10: {rolledOut: true}},
			available: "True", progressing: "False", degraded: "False", reported: "1.0.0",
		},
		"a CRD that is back, before the rollout": {
			before: running, version: "1.0.0", syncs: map[int]outcome{9: {failure: missing}, 10: {}},
			available: "True", progressing: "False", degraded: "False", reported: "1.0.0",
		},
		"a CRD that was never there":   {version: "1.0.0", syncs: map[int]outcome{0: {failure: missing}}, available: "False", degraded: "True", message: missing.Error()},
		"an upgrade":                   {before: running, version: "1.1.0", syncs: map[int]outcome{9: {}}, available: "True", progressing: "True", degraded: "False", reported: "1.0.0"},
		"an upgrade that fails":        {before: running, version: "1.1.0", syncs: map[int]outcome{9: {}, 28: {failure: errAway}}, available: "True", progressing: "True", degraded: "False", reported: "1.0.0"},
		"an upgrade that fails long":   {before: running, version: "1.1.0", syncs: map[int]outcome{9: {}, 30: {failure: errAway}}, available: "True", progressing: "True", degraded: "True", reported: "1.0.0", message: "Failed when progressing towards operator: 1.1.0 because the API server is away"},
		"an upgrade that is completed": {before: running, version: "1.1.0", syncs: map[int]outcome{9: {}, 30: {failure: errAway}, 31: {rolledOut: true}}, available: "True", progressing: "False", degraded: "False", reported: "1.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := after(test.before, test.version, test.syncs)
			for kind, want := range map[configv1.ClusterStatusConditionType]string{
				configv1.OperatorAvailable: test.available, configv1.OperatorProgressing: test.progressing, configv1.OperatorDegraded: test.degraded, configv1.OperatorUpgradeable: "True",
			} {
				found := condition(got, kind)
				if want == "" {
					want = "False"
				}
				if found == nil || string(found.Status) != want {
					t.Errorf("%s: %+v, want %s", kind, found, want)
				}
			}
			if reported(got) != test.reported {
				t.Errorf("version %q, want %q", reported(got), test.reported)
			}
			if degraded := condition(got, configv1.OperatorDegraded); test.message != "" && degraded.Message != test.message {
				t.Errorf("message %q, want %q", degraded.Message, test.message)
			}
		})
	}
}

func TestEnginesThatRunUnconfinedAreReported(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{nil, ""},
		{[]string{"--sandbox=required", "--sandbox-read=/etc/keys"}, ""},
		{[]string{"--sandbox=off"}, "--sandbox=off"},
		{[]string{"--sandbox=off", "--sandbox=preferred"}, "--sandbox=preferred"},
		{[]string{"--sandbox=off", "--sandbox=required"}, ""},
	} {
		if got := unconfined(test.arguments); got != test.want {
			t.Errorf("%v: %q, want %q", test.arguments, got, test.want)
		}
	}
	confined := after(configv1.ClusterOperatorStatus{}, "1.0.0", map[int]outcome{0: {rolledOut: true}})
	if found := condition(confined, enginesConfined); found != nil {
		t.Errorf("nothing was chosen: %+v", found)
	}
	off := after(confined, "1.0.0", map[int]outcome{1: {rolledOut: true, unconfined: "--sandbox=off"}})
	if found := condition(off, enginesConfined); found == nil || found.Status != configv1.ConditionFalse || !strings.Contains(found.Message, "--sandbox=off") {
		t.Errorf("it is off: %+v", found)
	}
	again := after(off, "1.0.0", map[int]outcome{2: {rolledOut: true}})
	if found := condition(again, enginesConfined); found == nil || found.Status != configv1.ConditionTrue {
		t.Errorf("it is required again: %+v", found)
	}
}

func TestChangesThatWereRevertedAreReportedForAnHour(t *testing.T) {
	running := after(configv1.ClusterOperatorStatus{}, "1.0.0", map[int]outcome{0: {rolledOut: true}})
	if found := condition(running, changesReverted); found != nil {
		t.Errorf("nothing was changed: %+v", found)
	}
	for minute, want := range map[int]configv1.ConditionStatus{2: configv1.ConditionTrue, 61: configv1.ConditionTrue, 62: configv1.ConditionFalse} {
		got := condition(after(running, "1.0.0", map[int]outcome{1: {rolledOut: true, reverted: "Role x"}, minute: {rolledOut: true}}), changesReverted)
		if got == nil || got.Status != want || want == configv1.ConditionTrue && !strings.Contains(got.Message, "a change of Role x; change the settings in the ConfigMap") {
			t.Errorf("after %d minutes: %+v, want %s", minute-1, got, want)
		}
	}
}

func TestTheTimeOfATransitionIsThatOfTheStatus(t *testing.T) {
	first := after(configv1.ClusterOperatorStatus{}, "1.0.0", map[int]outcome{0: {rolledOut: true}})
	later := after(first, "1.0.0", map[int]outcome{1: {failure: errAway}, 2: {failure: errors.New("another one")}})
	if since := condition(later, configv1.OperatorDegraded).LastTransitionTime; !since.Time.Equal(began.Add(time.Minute)) {
		t.Errorf("degraded since %s, want the first failure", since)
	}
	if since := condition(later, configv1.OperatorAvailable).LastTransitionTime; !since.Time.Equal(began) {
		t.Errorf("available since %s, want the beginning", since)
	}
}

func TestTLSOf(t *testing.T) {
	modern := &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
	custom := &configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{TLSProfileSpec: configv1.TLSProfileSpec{
		MinTLSVersion: configv1.VersionTLS12, Ciphers: []string{"ECDHE-RSA-AES128-GCM-SHA256", "DES-CBC3-SHA", "NO-SUCH-SUITE"},
	}}}
	strict := configv1.TLSAdherencePolicyStrictAllComponents
	for name, test := range map[string]struct {
		spec    configv1.APIServerSpec
		version string
		suites  int
	}{
		"nothing chosen":               {configv1.APIServerSpec{}, "VersionTLS12", 6},
		"not for every component":      {configv1.APIServerSpec{TLSSecurityProfile: modern}, "VersionTLS12", 6},
		"modern":                       {configv1.APIServerSpec{TLSSecurityProfile: modern, TLSAdherence: strict}, "VersionTLS13", 0},
		"suites that Go does not have": {configv1.APIServerSpec{TLSSecurityProfile: custom, TLSAdherence: strict}, "VersionTLS12", 1},
	} {
		if got := tlsOf(test.spec); got.MinVersion != test.version || len(got.CipherSuites) != test.suites {
			t.Errorf("%s: %+v, want %s and %d suites", name, got, test.version, test.suites)
		}
	}
}

func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string]string
		want string
	}{
		"an unknown key":         {map[string]string{"webhook": "Disabled"}, `"webhook" is no setting; use platform, webhooks, arguments, egress, moduleKeys, stateKeys, nodeSelector, tolerations, `},
		"an unknown value":       {map[string]string{"webhooks": "off"}, `webhooks is "off"; set it to Enabled or Disabled`},
		"a line that is no flag": {map[string]string{"arguments": "--a=b\nmax-concurrent-runs=3\n"}, `"max-concurrent-runs=3", which is no flag`},
		"what is no network":     {map[string]string{"egress": "192.0.2.0/24 443\napi.example.com\n"}, `egress: "api.example.com" is no network`},
		"what is no name":        {map[string]string{"moduleKeys": "module keys"}, `moduleKeys is "module keys", which cannot be the name`},
		"no name either":         {map[string]string{"stateKeys": "State"}, `stateKeys is "State", which cannot be the name`},
		"what may be chosen": {map[string]string{
			"webhooks": "Enabled", "platform": "kubemark", "arguments": "\n--a=b\n", "egress": "# the cloud\n192.0.2.0/24 443\n2001:db8::1/128\n", "moduleKeys": "module-keys\n", "stateKeys": "state-keys\n",
		}, ""},
	} {
		err := chooseFrom(test.data)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func chooseFrom(data map[string]string) error {
	return choose(&corev1.ConfigMap{Data: data}, &operands.Inputs{})
}

func TestFlagsAreValidatedByTheManagerOnce(t *testing.T) {
	folder := t.TempDir()
	program, calls := filepath.Join(folder, "machine-controllers"), filepath.Join(folder, "calls")
	script := `#!/bin/sh
echo "$POD_IP $*" >>"` + calls + `"
[ "$2" != --wrong ] || { echo "flag provided but not defined: -wrong
Usage of machine-controllers:
machine-controllers: flag provided but not defined: -wrong" >&2; exit 1; }
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := New(Options{Manager: program})
	for range 2 {
		if err := r.validate(t.Context(), []string{"--right"}); err != nil {
			t.Error(err)
		}
	}
	err := r.validate(t.Context(), []string{"--wrong"})
	if err == nil || err.Error() != "arguments: flag provided but not defined: -wrong" {
		t.Errorf("got %v", err)
	}
	got, err := os.ReadFile(calls)
	if err != nil || string(got) != "127.0.0.1 validate --right\n127.0.0.1 validate --wrong\n" {
		t.Errorf("the manager was called with %q, %v", got, err)
	}
	if err := New(Options{}).validate(t.Context(), []string{"--wrong"}); err != nil {
		t.Errorf("without the program: %v", err)
	}
}
