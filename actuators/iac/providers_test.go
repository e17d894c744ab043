package iac

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// ownMirror gives the bench a copy of the provider of kubemark, with a manifest. It returns the
// provider's file.
func (b *bench) ownMirror() string {
	b.t.Helper()
	source := repository(b.t, "bin", "mirror")
	const kubectl = "registry.opentofu.org/gavinbunney/kubectl/*/*/terraform-provider-kubectl_v*"
	found, err := filepath.Glob(filepath.Join(source, kubectl))
	if err != nil || len(found) != 1 {
		b.t.Fatalf("found %q, %v; run 'make tools'", found, err)
	}
	name, err := filepath.Rel(source, found[0])
	if err != nil {
		b.t.Fatal(err)
	}
	b.mirror = filepath.Join(b.t.TempDir(), "mirror")
	file := filepath.Join(b.mirror, name)
	content, err := os.ReadFile(found[0])
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.exchange(file, content)
	b.listProvider(content, file)
	return file
}

// exchange replaces a provider.
func (b *bench) exchange(file string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(file+".new", content, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		b.t.Fatal(err)
	}
}

// listProvider writes the manifest of the bench's mirror.
func (b *bench) listProvider(content []byte, file string) {
	b.t.Helper()
	line := fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(content), filepath.Base(file))
	if err := os.WriteFile(b.mirror+".sha256", line, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func TestOtherProvidersAreShownAndStopNothing(t *testing.T) {
	b := newBench(t)
	file := b.ownMirror()
	b.start(shortdir.New(t), "owner-1")
	machine := b.machine()
	b.bring(machine)
	first := b.record(machine).Providers
	if first == nil || !strings.HasPrefix(first.Applied, filepath.Base(file)+" ") || first.Seen != "" {
		t.Fatalf("recorded the providers %+v, want those of the create", first)
	}
	built, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	built = append(built, 0) // it still runs
	b.exchange(file, built)

	// The manifest knows the first binary only.
	set(machine, b, "zone", "zone-b")
	b.poll(func() error { return b.Update(t.Context(), machine) }, "does not match "+b.mirror+".sha256: want SHA-256 ")
	set(machine, b, "zone", "zone-a")
	b.listProvider(built, file)
	b.start(shortdir.New(t), "owner-1") // as after an upgrade
	checked := b.checked(machine)
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update after a check that found %+v: %v", checked, err)
	}
	now := b.record(machine).Providers
	if now.Applied != first.Applied || now.Seen == "" || now.Seen == first.Applied {
		t.Errorf("recorded the providers %+v, want the new ones beside %q", now, first.Applied)
	}
	condition := conditionOf(machine, reporting.ProvidersChanged)
	if condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, now.Seen) {
		t.Errorf("got the condition %+v, want it to name %q", condition, now.Seen)
	}
	if sent := strings.Join(b.events(), "\n"); strings.Count(sent, "ProvidersChanged") != 1 {
		t.Errorf("got the events %q, want one ProvidersChanged", sent)
	}

	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if got := b.record(machine).Providers; got.Applied != now.Seen || got.Seen != "" {
		t.Errorf("recorded the providers %+v, want %q as applied", got, now.Seen)
	}
	if condition := conditionOf(machine, reporting.ProvidersChanged); condition.Type != "" {
		t.Errorf("got the condition %+v after an applied run", condition)
	}
	if sent := strings.Join(b.events(), "\n"); strings.Contains(sent, "ProvidersChanged") {
		t.Errorf("got the events %q, want no second ProvidersChanged", sent)
	}
}

func TestAMissingProviderIsNamedUntilItIsAdded(t *testing.T) {
	b := newBench(t)
	b.ownMirror()
	packages, elsewhere := filepath.Join(b.mirror, "registry.opentofu.org"), filepath.Join(t.TempDir(), "packages")
	if err := os.Rename(packages, elsewhere); err != nil {
		t.Fatal(err)
	}
	b.start(shortdir.New(t), "owner-1")
	machine := b.machine()
	if err := b.drive(b.Create, machine); err == nil || !strings.Contains(err.Error(), "docs/modules.md#get-the-provider") {
		t.Errorf("Create returned %v, want what to do", err)
	}
	status := readProviderStatus(machine)
	if status.Failure == nil || status.Failure.Class != "ProviderNotInstalled" {
		t.Errorf("got the failure %+v", status.Failure)
	}
	condition := conditionOf(machine, reporting.ProviderAvailable)
	if condition.Status != metav1.ConditionFalse || condition.Reason != "ProviderNotInstalled" ||
		!strings.Contains(condition.Message, "gavinbunney/kubectl") || !strings.Contains(condition.Message, "docs/modules.md#get-the-provider") {
		t.Errorf("got the condition %+v, want it to name the provider and what to do", condition)
	}
	if err := os.Rename(elsewhere, packages); err != nil {
		t.Fatal(err)
	}
	b.comesRight(b.Create, machine)
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if condition := conditionOf(machine, reporting.ProviderAvailable); condition.Type != "" {
		t.Errorf("got the condition %+v once the provider is there", condition)
	}
}
