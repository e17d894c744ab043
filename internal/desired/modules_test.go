package desired

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/modules"
)

func TestUpdatesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation  *string
		fallback    ModuleUpdates
		want        ModuleUpdates
		wantMisread bool
	}{
		"the operator's, without an annotation": {nil, ModuleUpdatesInPlace, ModuleUpdatesInPlace, false},
		"the Machine's wins":                    {new(string(ModuleUpdatesInPlace)), ModuleUpdatesHold, ModuleUpdatesInPlace, false},
		"also when it is the stricter one":      {new(string(ModuleUpdatesHold)), ModuleUpdatesInPlace, ModuleUpdatesHold, false},
		"what cannot be read allows nothing":    {new("inplace"), ModuleUpdatesInPlace, ModuleUpdatesHold, true},
		"nor does what is empty":                {new(""), ModuleUpdatesInPlace, ModuleUpdatesHold, true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{}
			if tc.annotation != nil {
				machine.Annotations = map[string]string{ModuleUpdatesAnnotation: *tc.annotation}
			}
			got, misread := updatesOf(machine, tc.fallback)
			if got != tc.want || (misread != "") != tc.wantMisread {
				t.Errorf("got %q, %q; want %q", got, misread, tc.want)
			}
			if misread != "" && !strings.Contains(misread, "set it to Hold or InPlace") {
				t.Errorf("%q does not say how to fix it", misread)
			}
		})
	}
}

func TestModuleUpdatesIsAFlag(t *testing.T) {
	var u ModuleUpdates
	if err := u.Set("InPlace"); err != nil || u.String() != "InPlace" {
		t.Errorf("set to %q, %v", u, err)
	}
	if err := u.Set("hold"); err == nil || !strings.Contains(err.Error(), "must be Hold or InPlace") || u != ModuleUpdatesInPlace {
		t.Errorf("set to %q, %v; want an error that says how to fix it, and no change", u, err)
	}
}

func TestModuleStatus(t *testing.T) {
	older, newer := shipped(t, "kubemark"), shipped(t, "vsphere")
	refused := &UnsupportedError{Message: "it would be replaced"}
	for name, tc := range map[string]struct {
		modules    Modules
		withheld   error
		wantReason string
		want       []string
	}{
		"none while there is nothing":             {Modules{Pinned: newer, Current: newer}, nil, "", nil},
		"true with the current one":               {Modules{Reference: newer.Reference(), Pinned: newer, Current: newer}, nil, ReasonCurrent, nil},
		"a misread annotation is reported anyhow": {Modules{Reference: newer.Reference(), Pinned: newer, Current: newer, misread: "write it"}, nil, ReasonCurrent, []string{"write it"}},
		"held, with how to allow it": {
			Modules{Reference: older.Reference(), Pinned: older, Current: newer, updates: ModuleUpdatesHold}, nil, reasonUpdateHeld,
			[]string{short(older.Reference()), short(newer.Reference()), ModuleUpdatesAnnotation + ": InPlace"},
		},
		"allowed, and not yet there": {
			Modules{Reference: older.Reference(), Pinned: older, Current: newer, updates: ModuleUpdatesInPlace}, nil, reasonUpdating,
			[]string{short(older.Reference()), short(newer.Reference())},
		},
		"allowed, and refused": {
			Modules{Reference: older.Reference(), Pinned: older, Current: newer, updates: ModuleUpdatesInPlace}, refused, reasonUpdateRefused,
			[]string{short(older.Reference()), "it would be replaced"},
		},
		"lost": {
			Modules{Reference: older.Reference(), Current: newer, missing: errors.New("no Secret")}, nil, reasonContentLost,
			[]string{short(older.Reference()), short(newer.Reference()), "no Secret"},
		},
		"not served any more": {Modules{Reference: older.Reference(), Pinned: older}, nil, reasonNotServed, []string{short(older.Reference())}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.modules.Status(tc.withheld)
			if got == nil {
				got = &ModuleStatus{}
			}
			if got.Reason != tc.wantReason {
				t.Errorf("got %s, want %s", got.Reason, tc.wantReason)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q lacks %q", got.Message, want)
				}
			}
			if strings.Contains(got.Message, older.Digest()) || strings.Contains(got.Message, newer.Digest()) {
				t.Errorf("message %q has a whole digest", got.Message)
			}
		})
	}
}

func TestShort(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	if got, want := short("kubemark@sha256:"+digest), "kubemark@sha256:0123456789ab"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := short("odd"); got != "odd" {
		t.Errorf("got %q, want what is no reference as it is", got)
	}
}

// shipped returns a module of this repository.
func shipped(t *testing.T, name string) *module.Module {
	t.Helper()
	all, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(m *module.Module) bool { return m.Name() == name })
	if at < 0 {
		t.Fatalf("there is no module %s", name)
	}
	return all[at]
}
