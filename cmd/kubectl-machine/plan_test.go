package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// installed puts the plugin into a folder that has the engine and the providers beside it, and returns its path.
func installed(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	flags := realEngine(t)
	beside := map[string]string{
		"tofu": flags[1], "mirror": flags[3], "pulumi": repository(t, "bin", "pulumi"), "pulumi-plugins": repository(t, "bin", "pulumi-plugins"),
	}
	for name, target := range beside {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return placePlugin(t, bin)
}

// alone runs a command line with an empty environment, in a network namespace that has no interface but loopback, which is down. It
// fails where namespaces are forbidden: a test that was skipped would prove nothing. And it fails where anything was sent, or would have
// been if there were a way: the kernel counts that, so that nobody gets away with ignoring the error.
func alone(t *testing.T, stdin string, arguments ...string) result {
	t.Helper()
	return namespaced(t, isolated, asked, stdin, arguments...)
}

// namespaced runs a command line in such a namespace by a script, and fails where something was asked.
func namespaced(t *testing.T, script string, asked []string, stdin string, arguments ...string) result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell shows the interfaces that there are, and what the kernel has counted; "$@" is what it is given.
	command := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", script, self}, arguments...)...)
	report, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	var out, errOut strings.Builder
	command.Dir, command.Env, command.ExtraFiles = t.TempDir(), []string{}, []*os.File{writer}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &errOut
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err = command.Run()
	if command.ProcessState == nil {
		t.Fatalf("%v; this test needs user and network namespaces: allow them (user.max_user_namespaces, seccomp, AppArmor), or run it where they are", err)
	}
	writer.Close() //nolint:errcheck // what was written to it is read
	listed, err := io.ReadAll(report)
	if err != nil {
		t.Fatal(err)
	}
	checkIsolated(t, string(listed), asked)
	return result{code: command.ProcessState.ExitCode(), out: out.String(), err: errOut.String()}
}

// isolated runs a command, and reports on file 3 the network's devices and counters.
const isolated = `report() { while read -r line; do echo "$line" >&3; done <"$1"; }
report /proc/self/net/dev
"$@" 3>&-
code=$?
report /proc/self/net/snmp
report /proc/self/net/snmp6
exit $code`

// asked are what the kernel counts when a program sends something, finds no way to do so, or connects to another. Not every kernel counts
// the last two.
var asked = []string{"Ip OutRequests", "Ip OutNoRoutes", "Tcp ActiveOpens", "Udp OutDatagrams", "Ip6OutRequests", "Ip6OutNoRoutes"}

// checkIsolated checks that the shell reported loopback only, and no use of it.
func checkIsolated(t *testing.T, report string, asked []string) {
	t.Helper()
	devices, counted, found := strings.Cut(report, "\nIp: ")
	if !found {
		t.Fatalf("no counters are in\n%s", report)
	}
	interfaces := regexp.MustCompile(`(?m)^(\S+):`).FindAllString(devices, -1)
	if !slices.Equal(interfaces, []string{"lo:"}) {
		t.Fatalf("the interfaces are %q; want loopback, and no other", interfaces)
	}
	counters := countersIn("Ip: " + counted)
	for n, name := range asked {
		if value, known := counters[name]; value != "0" && (known || n < 4) {
			t.Errorf("%s is %q; want 0: something reached for the network", name, value)
		}
	}
}

// countersIn reads counters: lines of titles followed by lines of values, and lines of both.
func countersIn(report string) map[string]string {
	counters, titles := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(report) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && !strings.HasSuffix(fields[0], ":"):
			counters[fields[0]] = fields[1]
		case len(fields) < 2:
		case titles[fields[0]] == nil:
			titles[fields[0]] = fields
		default:
			for n, title := range titles[fields[0]][:min(len(fields), len(titles[fields[0]]))] {
				counters[strings.TrimSuffix(fields[0], ":")+" "+title] = fields[n]
			}
		}
	}
	return counters
}

func TestReachingForTheNetworkIsSeen(t *testing.T) {
	before := "Inter-| Receive\nlo: 0 0\nIp: Forwarding OutRequests OutNoRoutes\nIp: 2 0 %s\nTcp: ActiveOpens\nTcp: 0\nUdp: OutDatagrams\nUdp: 0\nIp6OutRequests \t%s\n"
	checkIsolated(t, fmt.Sprintf(before, "0", "0"), asked)
	for _, one := range []string{fmt.Sprintf(before, "1", "0"), fmt.Sprintf(before, "0", "7")} {
		counters := countersIn(one)
		if counters["Ip OutNoRoutes"] == "0" && counters["Ip6OutRequests"] == "0" {
			t.Errorf("nothing is counted in\n%s", one)
		}
	}
}

func TestPlanNeedsNeitherNetworkNorEnvironment(t *testing.T) {
	long.Test(t)
	plugin, cache := installed(t), t.TempDir()
	for module, resources := range map[string]int{"kubemark": 2, "vsphere": 3} {
		example := repository(t, "modules", module, "examples", "machineset.yaml")
		t.Run(module, func(t *testing.T) {
			got := alone(t, "", plugin, "plan", "-f", example)
			if got.code != 0 || got.err != "" || !strings.HasSuffix(got.out, fmt.Sprintf("Preview: 1 MachineSet, 3 Machines: %d resources to add, 0 to change, 0 to destroy.\n", 3*resources)) {
				t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
			}
			if strings.Contains(got.out, "\x1b") {
				t.Errorf("it has colours, although no terminal reads it:\n%q", got.out)
			}
		})
		t.Run(module+", from the standard input and a cache", func(t *testing.T) {
			manifest, err := os.ReadFile(example)
			if err != nil {
				t.Fatal(err)
			}
			var previews []preview.Preview
			for range 2 {
				got := alone(t, string(manifest), plugin, "plan", "-f", "-", "--cache-dir", cache, "-o", "json", "--detailed-exitcode")
				if got.code != 2 || got.err != "" {
					t.Fatalf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
				}
				var read preview.Preview
				if err := json.Unmarshal([]byte(got.out), &read); err != nil {
					t.Fatalf("%v in\n%s", err, got.out)
				}
				previews = append(previews, read)
			}
			if diff := cmp.Diff(previews[0], previews[1]); diff != "" {
				t.Errorf("the second time it says something else (-first +second):\n%s", diff)
			}
			if set := previews[0].Sets[0]; set.Source.File != "-" || set.Replicas != 3 || len(set.Resources) != resources {
				t.Errorf("it has %+v", set)
			}
		})
	}
}

func TestPlanOfACloudNeedsRecordedSchemasOnly(t *testing.T) {
	plugin := installed(t)
	if err := os.Symlink(repository(t, "bin", "schemas"), filepath.Join(filepath.Dir(plugin), "schemas")); err != nil {
		t.Fatal(err)
	}
	got := alone(t, "", plugin, "plan", "-f", repository(t, "modules", "aws", "examples", "machineset.yaml"))
	if got.code != 0 || got.err != "" || !strings.Contains(got.out, "+ aws_instance.this\n") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}

// TestEveryExampleCanBePlanned plans the examples of all modules: none has a number of resources that only the infrastructure knows. The
// image and the disks that a module lists are those that its plan makes.
func TestEveryExampleCanBePlanned(t *testing.T) {
	long.Test(t)
	examples, err := fs.Glob(modules.FS, "*/examples/machine*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("want examples, got %v, %v", examples, err)
	}
	flags := []string{"plan", "-o", "json", "--cache-dir", t.TempDir(), "--engine-path", realEngine(t)[1], "--provider-mirror", repository(t, "bin", "schemas")}
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			got := runCommand(t, append(flags, "-f", repository(t, "modules", filepath.FromSlash(example)))...)
			var read preview.Preview
			if err := json.Unmarshal([]byte(got.out), &read); err != nil || got.code != 0 || got.err != "" || read.Summary.Sets+read.Summary.Deployments != 1 {
				t.Fatalf("it ends with %d, %q, %v and\n%s", got.code, got.err, err, got.out)
			}
			set := read.Sets[0]
			if without := strings.HasPrefix(example, "kubemark/"); without == (set.Image.Value != nil && len(set.Disks) > 0) {
				t.Errorf("it lists the image %v and the disks %+v; want both where an instance has them", set.Image.Value, set.Disks)
			}
			if set.Image.Value != nil && !planHas(set, set.Image.Value) {
				t.Errorf("nothing is made of the image %v", set.Image.Value)
			}
			for _, disk := range set.Disks {
				if size, known := disk.Size.Value.(string); known && !planHas(set, strings.TrimSuffix(size, "Gi")) && !planHas(set, mebibytes(t, size)) {
					t.Errorf("no disk of the plan has %s", size)
				}
				if disk.Type != "" && !planHas(set, disk.Type) {
					t.Errorf("no disk of the plan is of the type %s", disk.Type)
				}
			}
		})
	}
}

// mebibytes returns a size as some providers take it.
func mebibytes(t *testing.T, size string) int64 {
	t.Helper()
	quantity, err := resource.ParseQuantity(size)
	if err != nil {
		t.Fatal(err)
	}
	return quantity.Value() >> 20
}

// planHas reports whether a value is in the plan of a MachineSet.
func planHas(set *preview.Set, value any) bool {
	return slices.ContainsFunc(set.Resources, func(resource preview.Resource) bool {
		return slices.ContainsFunc(resource.Attributes, func(attribute preview.Attribute) bool {
			return fmt.Sprint(attribute.Value.Value) == fmt.Sprint(value)
		})
	})
}

// manifestOf writes a MachineSet of the kubemark module with so many replicas.
func manifestOf(t *testing.T, replicas string) string {
	t.Helper()
	example, err := os.ReadFile(repository(t, "modules", "kubemark", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "machineset.yaml")
	write(t, file, strings.Replace(string(example), "replicas: 3", "replicas: "+replicas, 1))
	return file
}

func TestPlanCommandLine(t *testing.T) {
	long.Test(t)
	good, none, wrong := manifestOf(t, "3"), manifestOf(t, "0"), manifestOf(t, "-1")
	pool := repository(t, "modules", "kubemark", "examples", "machinedeployment.yaml")
	secret, doubtful := filepath.Join(t.TempDir(), "secret.yaml"), filepath.Join(t.TempDir(), "doubtful.yaml")
	write(t, secret, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write(t, doubtful, strings.Replace(string(content), "          region:", "          reggion: a\n          region:", 1))
	ignored := "warning: " + doubtful + ":2: document 1, MachineSet openshift-machine-api/hollow: spec.template.spec.providerSpec.value.reggion: unknown field, ignored; did you mean \"region\"?\n"
	cases := map[string]struct {
		arguments []string
		wantCode  int
		wantOut   string
		wantErr   string
	}{
		"something that would change":           {arguments: []string{"-f", good}, wantOut: "6 resources to add"},
		"something that would change, asked":    {arguments: []string{"-f", good, "--detailed-exitcode"}, wantCode: 2, wantOut: "6 resources to add"},
		"nothing that would change":             {arguments: []string{"-f", none, "--detailed-exitcode"}, wantOut: "0 resources to add"},
		"YAML":                                  {arguments: []string{"-f", good, "-o", "yaml"}, wantOut: "\nmachineSets:\n"},
		"Markdown":                              {arguments: []string{"-f", good, "-o", "markdown"}, wantOut: "### Preview\n"},
		"what else is in a file is skipped":     {arguments: []string{"-f", good, "-f", secret}, wantOut: "6 resources", wantErr: "warning: skipped objects of other kinds: Secret s in " + secret},
		"a field that is ignored":               {arguments: []string{"-f", doubtful, "--detailed-exitcode"}, wantCode: 2, wantOut: "6 resources", wantErr: ignored},
		"a field that is ignored, as JSON":      {arguments: []string{"-f", doubtful, "-o", "json"}, wantOut: `value.reggion: unknown field`, wantErr: ignored},
		"a field that must not be ignored":      {arguments: []string{"-f", doubtful, "--strict", "--detailed-exitcode"}, wantCode: 1, wantOut: "6 resources", wantErr: ignored + "error: --strict: got 1 warning(s); fix what is named above"},
		"all warnings are errors":               {arguments: []string{"-f", doubtful, "-f", secret, "--strict"}, wantCode: 1, wantErr: "\nerror: --strict: got 2 warning(s)"},
		"no warning":                            {arguments: []string{"-f", good, "--strict"}, wantOut: "6 resources"},
		"a manifest that is wrong":              {arguments: []string{"-f", wrong, "--detailed-exitcode"}, wantCode: 1, wantErr: wrong + ":10: document 1, MachineSet openshift-machine-api/hollow: spec.replicas: "},
		"no manifest":                           {wantCode: 1, wantErr: "error: there is nothing to plan; name a file, a folder or - with -f"},
		"no MachineSet":                         {arguments: []string{"-f", secret}, wantCode: 1, wantErr: "error: no MachineDeployment, MachineSet or Machine found in " + secret},
		"a file that is not there":              {arguments: []string{"-f", "nowhere"}, wantCode: 1, wantErr: "nowhere: no such file or directory; name a file, a folder"},
		"a form that is not known":              {arguments: []string{"-f", good, "-o", "xml"}, wantCode: 1, wantErr: `the output format "xml" is not known; write -o json, -o yaml or -o markdown`},
		"no engine at once":                     {arguments: []string{"-f", good, "--parallel", "0"}, wantCode: 1, wantErr: "--parallel is 0; it must be positive"},
		"an engine that is not there":           {arguments: []string{"-f", good, "--engine-path", "nowhere"}, wantCode: 1, wantErr: "finding the engine at"},
		"a mirror that is not there":            {arguments: []string{"-f", good, "--provider-mirror", "nowhere"}, wantCode: 1, wantErr: "name one that is laid out as a filesystem mirror"},
		"modules that are not there":            {arguments: []string{"-f", good, "--module-dir", "nowhere"}, wantCode: 1, wantErr: "loading modules from nowhere"},
		"no time":                               {arguments: []string{"-f", good, "--timeout", "1ns"}, wantCode: 1, wantErr: "--timeout gives it more time"},
		"an argument instead of a flag's value": {arguments: []string{good}, wantCode: 1, wantErr: "machineset/NAME or machine/NAME, or -f before a file"},
		"names and files":                       {arguments: []string{"workers", "-f", good}, wantCode: 1, wantErr: "there are both names (workers) and files"},
		"a refresh of nothing":                  {arguments: []string{"-f", good, "--refresh"}, wantCode: 1, wantErr: "--refresh is about Machines that exist; add --live, or name a MachineSet"},
		"a key that nothing needs":              {arguments: []string{"-f", good, "--module-key-file", "k"}, wantCode: 1, wantErr: "--module-key-file is about modules that the cluster stores; add --live"},
		"variables that nobody gets":            {arguments: []string{"-f", good, "--live", "--engine-env", "A=b"}, wantCode: 1, wantErr: "--engine-env is for providers that reach the infrastructure; add --refresh"},
		"a policy that is not known":            {arguments: []string{"-f", good, "--module-updates", "Never"}, wantCode: 1, wantErr: "must be Hold or InPlace"},
		"a MachineDeployment":                   {arguments: []string{"-f", pool}, wantOut: "Preview: 1 MachineDeployment, 3 Machines: 6 resources to add"},
		"an unknown expectation":                {arguments: []string{"-f", pool, "--live", "--expect", "less"}, wantCode: 1, wantErr: "--expect is \"less\"; write in-place"},
		"an expectation of nothing":             {arguments: []string{"-f", pool, "--expect", "in-place"}, wantCode: 1, wantErr: "--expect and --all are about Machines that exist; add --live"},
		"a cluster that is not there":           {arguments: []string{"-f", good, "--live", "--kubeconfig", "nowhere"}, wantCode: 1, wantErr: "name a kubeconfig with --kubeconfig"},
		"a kind that is no Machine":             {arguments: []string{"node/a", "--server", "https://127.0.0.1:1"}, wantCode: 1, wantErr: `"node/a" names no MachineDeployment, MachineSet or Machine`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := append([]string{"plan", "--cache-dir", t.TempDir()}, realEngine(t)...)
			got := runCommand(t, append(flags, tc.arguments...)...)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) || (tc.wantErr == "") != (got.err == "") {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
}

func TestWarningsComeBeforeThePlan(t *testing.T) {
	long.Test(t)
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	write(t, secret, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
	var terminal bytes.Buffer
	flags := append([]string{"plan", "--cache-dir", t.TempDir(), "-f", manifestOf(t, "1"), "-f", secret}, realEngine(t)...)
	if code := run(t.Context(), flags, &terminal, &terminal); code != 0 || !strings.HasPrefix(terminal.String(), "warning: skipped") {
		t.Errorf("it ends with %d and\n%s", code, terminal.String())
	}
}

func TestPlanWithAModuleOfOnesOwn(t *testing.T) {
	own, manifests := repository(t, "internal", "plan", "preview", "testdata", "modules"), repository(t, "internal", "plan", "preview", "testdata", "golden")
	flags := append([]string{"plan", "--cache-dir", t.TempDir(), "--module-dir", own, "--cluster-id", "demo"}, realEngine(t)...)
	got := runCommand(t, append(flags, "-f", filepath.Join(manifests, "machineset.input.yaml"), "-f", filepath.Join(manifests, "many.input.yaml"))...)
	if got.code != 0 || !strings.Contains(got.out, "Preview: 3 MachineSets, 22 Machines: 22 resources to add") || strings.Contains(got.out, "cluster-id") {
		t.Errorf("it ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}

func TestPlanCompletesItsFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"-o": "markdown\tfor pull requests", "-f": "yaml\nyml\njson", "--module-dir": ":16", "--namespace": ":4", "--engine-path": ":0",
	} {
		if got := runCommand(t, "__complete", "plan", flag, ""); !strings.Contains(got.out, want) {
			t.Errorf("%s is completed with %q; want %q", flag, got.out, want)
		}
	}
}
