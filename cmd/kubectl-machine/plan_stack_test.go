package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// raiseLoopback is the argument with which the tests' own program does nothing but bring up the loopback interface.
const raiseLoopback = "raise-loopback"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == raiseLoopback {
		if err := raise("lo"); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	closeShared()
	os.Exit(code)
}

// raise brings up an interface.
func raise(name string) error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket) //nolint:errcheck // nothing depends on it
	var request struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], name)
	request.flags = syscall.IFF_UP
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); failed != 0 {
		return failed
	}
	return nil
}

// talking is isolated where processes may talk to each other over loopback, as those of Pulumi do.
const talking = `"$0" ` + raiseLoopback + ` || exit 99
` + isolated

// askedBeyond are what the kernel counts when a program finds no way to anywhere but this machine, or asks it for names.
var askedBeyond = []string{"Ip OutNoRoutes", "Udp OutDatagrams", "Ip6OutNoRoutes"}

// together runs a command line with an empty environment in a network namespace whose only interface is loopback.
func together(t *testing.T, stdin string, arguments ...string) result {
	t.Helper()
	return namespaced(t, talking, askedBeyond, stdin, arguments...)
}

func TestPlanOfAStackNeedsNeitherNetworkNorEnvironment(t *testing.T) {
	plugin := installed(t)
	example := repository(t, "stacks", "kubemark", "examples", "machineset.yaml")
	got := together(t, "", plugin, "plan", "-f", example)
	if got.code != 0 || got.err != "" || !strings.HasSuffix(got.out, "Preview: 1 MachineSet, 3 Machines: 3 resources to add, 0 to change, 0 to destroy.\n") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}

// TestPlanOfBothEngines plans MachineSets of both engines in one call. Replicas, types and zones are the same.
func TestPlanOfBothEngines(t *testing.T) {
	long.Test(t)
	plugin := installed(t)
	stack, err := os.ReadFile(repository(t, "stacks", "kubemark", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	both := strings.ReplaceAll(string(stack), "name: hollow\n", "name: pulumi\n") + "---\n" + asModule(string(stack))
	got := together(t, both, plugin, "plan", "-f", "-", "--cache-dir", t.TempDir(), "-o", "json")
	var read preview.Preview
	if err := json.Unmarshal([]byte(got.out), &read); err != nil || got.code != 0 || len(read.Sets) != 2 {
		t.Fatalf("it ends with %d, %q, %v and\n%s", got.code, got.err, err, got.out)
	}
	if engines := strings.Fields(read.Engine); len(engines) != 4 || engines[0] != "tofu" || engines[2] != "pulumi" {
		t.Errorf("the engines are %q; want both, with their versions", read.Engine)
	}
	var rows []preview.Set
	for _, set := range read.Sets {
		rows = append(rows, preview.Set{
			Replicas: set.Replicas, InstanceType: set.InstanceType, Region: set.Region, Zone: set.Zone, Addresses: set.Addresses, Size: set.Size, Secrets: set.Secrets,
		})
	}
	if diff := cmp.Diff(rows[1], rows[0]); diff != "" {
		t.Errorf("the row of the stack is another than the module's (-module +stack):\n%s", diff)
	}
}

// asModule returns the MachineSet of a stack as one of the module of the same name.
func asModule(manifest string) string {
	return strings.NewReplacer("PulumiMachineProviderSpec", "TerraformMachineProviderSpec", "stack: kubemark", "module: kubemark").Replace(manifest)
}

func TestPlanSaysWhatAStackNeeds(t *testing.T) {
	example := repository(t, "stacks", "kubemark", "examples", "machineset.yaml")
	own := []string{"--pulumi", repository(t, "bin", "pulumi"), "--pulumi-plugins", repository(t, "bin", "pulumi-plugins"), "--provider-mirror", repository(t, "bin", "mirror")}
	cases := map[string]struct {
		arguments []string
		wantErr   string
	}{
		"no pulumi":                     {wantErr: "neither beside kubectl-machine nor on PATH; install it, or name its file with --pulumi"},
		"a pulumi that is none":         {arguments: []string{"--pulumi", "nowhere"}, wantErr: "name another with --pulumi"},
		"no plugins":                    {arguments: own[:2], wantErr: "name a folder with --pulumi-plugins"},
		"plugins that are not there":    {arguments: append(own[:2:2], "--pulumi-plugins", "nowhere", "--provider-mirror", own[5]), wantErr: "nowhere is no folder"},
		"no providers":                  {arguments: own[:4], wantErr: "name the latter with --provider-mirror"},
		"a mirror without the provider": {arguments: append(own[:4:4], "--provider-mirror", t.TempDir()), wantErr: "finding the provider registry.opentofu.org/gavinbunney/kubectl 1.19.0"},
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runCommand(t, append([]string{"plan", "-f", example}, tc.arguments...)...)
			if got.code != 1 || !strings.Contains(got.err, tc.wantErr) {
				t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
			}
		})
	}
}
