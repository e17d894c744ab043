package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// TestTheCommandLine runs command lines that must start nothing, in an empty folder.
func TestTheCommandLine(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for line, want := range map[string]int{
		"--help": 0, "-h": 0, "up": 2, "--unknown": 2, "--cluster=kind": 2, "--image=x": 2,
		"--image=x --down --cluster=current": 2,
		"--down --dir=x":                     2, "--cluster=current": 1, "--down": 0, "--down --cluster=local": 0,
	} {
		t.Run(line, func(t *testing.T) {
			command := newCommand()
			var help strings.Builder
			command.SetOut(&help)
			if got := lab.Execute(t.Context(), command, strings.Fields(line)); got != want {
				t.Errorf("got exit code %d, want %d", got, want)
			}
			if helps := strings.Contains(help.String(), "--cluster string"); helps != strings.Contains(line, "-h") {
				t.Errorf("it printed %q", help.String())
			}
			if _, err := os.Stat(".dev"); err == nil {
				t.Error("it started a cluster")
			}
		})
	}
}

// kubeconfig points KUBECONFIG to a cluster.
func kubeconfig(t *testing.T, server string) *clientcmdapi.Config {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["somewhere"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.CurrentContext = "somewhere"
	file := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return config
}

func TestTheDataFolderIsForOneClusterAndOneDemo(t *testing.T) {
	dir := t.TempDir()
	kubeconfig(t, "https://one.example:6443")
	first, err := openTarget(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openTarget(dir, false); err == nil || !strings.Contains(err.Error(), "another demo uses it") {
		t.Errorf("got %v, want that another demo uses it", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	kubeconfig(t, "https://two.example:6443")
	const refusal = "installed in context somewhere (https://one.example:6443)"
	if _, err := openTarget(dir, false); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("got %v, want a refusal that names the first cluster", err)
	}
	again, err := openTarget(dir, true)
	if err != nil || again.cluster.Server != "https://one.example:6443" {
		t.Fatalf("got %v, %v, want the first cluster", again, err)
	}
	defer again.close() //nolint:errcheck // the test is over
	if info, err := os.Stat(filepath.Join(dir, kubeconfigFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a kubeconfig that its owner only can read", info, err)
	}
}

func TestOnlyAClusterOnThisMachineIsNotAskedFor(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost:6443": true, "https://[::1]:6443": true,
		"https://192.168.49.2:8443": false, "https://localhost.example": false,
		"https://127.0.0.1.example": false, "": false,
	} {
		if got := loopback(&clientcmdapi.Cluster{Server: server}); got != want {
			t.Errorf("%s is on this machine: got %t, want %t", server, got, want)
		}
	}
	if loopback(&clientcmdapi.Cluster{Server: "https://localhost:6443", ProxyURL: "http://proxy.example"}) {
		t.Error("a cluster behind a proxy is on this machine")
	}
}

func TestWithoutATerminalItAsksForYes(t *testing.T) {
	input, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if _, err := io.WriteString(writer, "y\n"); err != nil {
		t.Fatal(err)
	}
	writer.Close() //nolint:errcheck // all was written
	before := os.Stdin
	os.Stdin = input
	defer func() { os.Stdin = before }()
	config := kubeconfig(t, "https://one.example")
	err = (&target{config: config, cluster: clusterOf(config)}).ask(t.Context())
	const refusal = "context somewhere (https://one.example): standard input is not a terminal; add --yes"
	if err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("got %v, want a refusal that says --yes", err)
	}
}
