package iac

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// A file that credentials name by path must be named by --sandbox-read, and the error says so.
func TestAFileThatCredentialsNameNeedsTheFlag(t *testing.T) {
	const file = "/etc/shells" // a file below /etc that engines may not read; as no certificate it is good for nothing else
	if _, err := os.Stat(file); err != nil {
		t.Skip(err)
	}
	c := newCloud(t)
	if c.confined().ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	named := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "named"}, StringData: map[string]string{
		"clouds.yaml": c.CloudsYAML() + "    cacert: " + file + "\n",
	}}
	if err := plane.Create(t.Context(), named); err != nil {
		t.Fatal(err)
	}
	machine := c.machine(func(spec map[string]any) { spec["cloudsSecret"] = map[string]any{"name": named.Name} })
	err := c.drive(c.Create, machine)
	if want := "engines cannot read " + file + "; add the file or its folder to --sandbox-read"; err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("Create: %v, want %q", err, want)
	}
	c.readable = []string{file}
	c.start(shortdir.New(t), "owner-1")
	err = c.drive(c.Create, machine)
	if err == nil || strings.Contains(err.Error(), "permission denied") || strings.Contains(err.Error(), "--sandbox-read") {
		t.Errorf("Create: %v, want that the file is read and found to be no authority", err)
	}
}
