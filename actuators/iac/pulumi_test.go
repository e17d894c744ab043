package iac

import (
	"context"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/pulumi"
)

// eachEngine runs a test with each engine. What is told, recorded and refused is the same with all.
func eachEngine(t *testing.T, test func(t *testing.T, b *bench)) {
	for _, name := range []v1alpha1.Engine{v1alpha1.EngineTerraform, v1alpha1.EnginePulumi} {
		t.Run(string(name), func(t *testing.T) {
			b := newBench(t)
			b.uses = name
			test(t, b)
		})
	}
}

// onPulumi answers the providerSpec of a stack for one of the module with its name.
func onPulumi(spec map[string]any) map[string]any {
	values := maps.Clone(spec)
	delete(values, "apiVersion")
	delete(values, "kind")
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PulumiMachineProviderSpecKind, "stack": "kubemark", "values": values,
	}
}

// pulumi makes an engine of Pulumi.
func (b *bench) pulumi() *pulumi.Engine {
	b.t.Helper()
	binary, err := pulumi.Find(b.t.Context(), repository(b.t, "bin", "pulumi"))
	if err != nil {
		b.t.Fatalf("%v; run 'make tools'", err)
	}
	// Plugins put sockets into it, whose paths are bounded.
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.t.Error(err)
		}
	})
	engine, err := pulumi.New(pulumi.Options{
		Binary: binary, WorkDir: dir, Plugins: repository(b.t, "bin", "pulumi-plugins"),
		ProviderMirror: repository(b.t, "bin", "mirror"), Slots: 4, WaitDelay: 10 * time.Second, Environment: b.environment,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return engine
}

// keys answers what checkpoints are encrypted with.
func (b *bench) keys() oneKey {
	b.t.Helper()
	key, err := pulumi.NewKey(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return oneKey{key}
}

type oneKey struct{ key *pulumi.Key }

func (k oneKey) Current(context.Context) (*pulumi.Key, error) { return k.key, nil }

func (k oneKey) For(context.Context, string) (*pulumi.Key, error) { return k.key, nil }
