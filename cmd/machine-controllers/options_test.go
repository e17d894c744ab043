package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goversion "github.com/hashicorp/go-version"

	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/modules"
)

func TestOptionsRefuseWhatCannotWork(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "machines")
	for name, tc := range map[string]struct {
		flags string
		want  string
	}{
		"what stands by itself works":                         {"", ""},
		"webhooks that are off need no certificate":           {"--webhook-enabled=false", ""},
		"a port that does not exist is refused":               {"--webhook-port=70000", "invalid --webhook-port 70000"},
		"no port is no way to turn webhooks off":              {"--webhook-port=0", "--webhook-enabled=false"},
		"a cluster that no label can name is refused":         {"--cluster-id=a/b", `invalid --cluster-id "a/b"`},
		"cluster values that modules use are taken":           {"--cluster-fact=region=r --cluster-fact=architecture=arm64", ""},
		"a cluster value that no module uses is refused":      {"--cluster-fact=zone=z", `invalid --cluster-fact "zone"`},
		"a Machine's namespace is no cluster value":           {"--cluster-fact=namespace=n", `invalid --cluster-fact "namespace"`},
		"the cluster's name has a flag of its own":            {"--cluster-fact=clusterID=c", `invalid --cluster-fact "clusterID"`},
		"a lease that a pause would end is refused":           {"--leader-elect-lease-duration=5s", "--leader-elect-lease-duration (5s)"},
		"engines that live longer than the lease are refused": {"--leader-elect-renew-deadline=2m16s", "--leader-elect-renew-deadline (2m16s)"},
		"a takeover is asked for":                             {"--adoption=OnRequest", ""},
		"an adoption that nobody knows is refused":            {"--adoption=always", "must be Never, OnRequest, Plan or Adopt"},
		"an engine that nobody knows is refused":              {"--engine=marble", "use tofu or terraform"},
		"a bound of nothing is refused":                       {"--max-concurrent-runs=0", "--max-concurrent-runs must be positive"},
		"engines that may not finish":                         {"--shutdown-grace=0s", ""},
		"less than no time to finish is refused":              {"--shutdown-grace=-1s", "invalid --shutdown-grace -1s"},
		"less than no warm provider is refused":               {"--warm-providers=-1", "invalid --warm-providers -1"},
		"warm providers need memory":                          {"--warm-providers-memory=0", "invalid --warm-providers-memory 0"},
		"an amount of memory has a unit":                      {"--warm-providers-memory=lots", "-warm-providers-memory: quantities"},
		"no provider is kept warm":                            {"--warm-providers=0", ""},
		"profiles are for this machine":                       {"--pprof-bind-address=127.0.0.1:6060", ""},
		"profiles for everybody are refused":                  {"--pprof-bind-address=:6060", "invalid --pprof-bind-address \":6060\""},
		"states without a Machine can be destroyed":           {"--orphan-policy=Delete --orphan-grace-period=72h", ""},
		"another policy for them is refused":                  {"--orphan-policy=delete", "must be Retain or Delete"},
		"an unknown version of TLS":                           {"--tls-min-version=TLS1.2", "--tls-min-version: unknown tls version \"TLS1.2\"; use one of"},
		"an unknown cipher suite":                             {"--tls-cipher-suites=RC4", "--tls-cipher-suites: "},
		"what a TLS profile names":                            {"--namespace=n --tls-min-version=VersionTLS12 --tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", ""},
		"they are not destroyed at once":                      {"--orphan-grace-period=0s", "--orphan-grace-period must be positive"},
		"kubeadm's group of bootstrap tokens":                 {"--bootstrap-token-group=system:bootstrappers:kubeadm:default-node-token", ""},
		"a group that no bootstrap token has":                 {"--bootstrap-token-group=system:masters", `--bootstrap-token-group: invalid group "system:masters"`},
		"tokens that expire during a create":                  {"--bootstrap-token-group=system:bootstrappers:a --bootstrap-token-lifetime=30m", "must exceed --run-timeout 30m"},
		"a manager without controllers has nothing to do":     {"--controllers=-machine", "--controllers"},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			flags := flag.NewFlagSet(name, flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			o.bind(flags)
			err := flags.Parse(strings.Fields(tc.flags))
			if err == nil {
				err = o.complete()
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestFlagsAreValidatedForTheOperator(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "machines")
	for flags, want := range map[string]string{
		"--max-concurrent-runs=16":            "",
		"--state-key-file=/nowhere":           "", // the operator does not have the file
		"--runs-in=jobs --runs-address=::1":   "",
		"--allow-provider-download":           "flag provided but not defined: -allow-provider-download",
		"--max-concurrent-runs=0":             "--max-concurrent-runs must be positive",
		"--help":                              "help requested",
		"--version":                           "--version ends the manager",
		"--engine-path":                       "flag needs an argument: -engine-path",
		"-- --max-concurrent-runs=16":         `unexpected argument "--max-concurrent-runs=16"`,
		"--max-concurrent-runs=16 validate":   `unexpected argument "validate"`,
		"--runs-in=jobs --run-memory=nothing": "-run-memory",
	} {
		t.Setenv("POD_NAME", "validate")
		err := start(t.Context(), append([]string{validateCommand}, strings.Fields(flags)...))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}

// TestTheDefaultEngineIsEnough takes the oldest engine that is accepted: it must have `init -json`
// (1.9), and every built-in module must accept it.
func TestTheDefaultEngineIsEnough(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	(&options{}).bind(flags)
	oldest := goversion.Must(goversion.NewVersion(strings.TrimPrefix(flags.Lookup("engine-version").DefValue, ">= ")))
	if first := goversion.Must(goversion.NewVersion("1.9.0")); oldest.LessThan(first) {
		t.Errorf("engines from %s on are accepted, but `init -json` is there from %s on", oldest, first)
	}
	files, err := fs.Glob(modules.FS, "*/terraform.tf")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d modules are built in, %v", len(files), err)
	}
	required := regexp.MustCompile(`required_version\s*=\s*"([^"]+)"`)
	for _, file := range files {
		content, err := fs.ReadFile(modules.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		found := required.FindSubmatch(content)
		if found == nil {
			t.Errorf("%s has no required_version", file)
			continue
		}
		if constraint := goversion.MustConstraints(goversion.NewConstraint(string(found[1]))); !constraint.Check(oldest) {
			t.Errorf("engines from %s on are accepted, but %s requires %s", oldest, file, constraint)
		}
	}
}

func TestThePodHasTheTimeThatItsManagerTakesToStop(t *testing.T) {
	var o options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o.bind(flags)
	content, err := fs.ReadFile(install.FS, "controllers/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindSubmatch(content)
	if found == nil {
		t.Fatal("the Deployment has no grace period")
	}
	seconds, err := strconv.Atoi(string(found[1]))
	if period := time.Duration(seconds) * time.Second; err != nil || period <= o.stopTimeout() {
		t.Errorf("the Pod's grace period is %s, %v, want more than the %s that the manager may take", period, err, o.stopTimeout())
	}
}

func TestClusterValuesAreThoseOfTheFlags(t *testing.T) {
	o := &options{clusterID: "demo", givenClusterValues: assignments{"region": "r"}}
	want := module.ClusterValues{module.ValueArchitecture: runtime.GOARCH, module.ValueRegion: "r", module.ValueClusterID: "demo"}
	if diff := cmp.Diff(want, o.clusterValues()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.givenClusterValues["architecture"] = "s390x"
	if got := o.clusterValues()[module.ValueArchitecture]; got != "s390x" {
		t.Errorf("the architecture is %q, want that of the flag", got)
	}
}

func TestTheLeaseIsWhereTheManagerIs(t *testing.T) {
	for name, tc := range map[string]struct {
		pod, namespace, flag              string
		wantLease, wantFormer, wantPulumi string
	}{
		"in a Pod":              {pod: "a", namespace: "a", wantLease: "a/" + leaseName, wantPulumi: "a"},
		"of another namespace":  {pod: "a", namespace: "b", wantLease: "a/" + leaseName + "-b", wantFormer: "b/" + leaseName, wantPulumi: "b"},
		"outside of a cluster":  {namespace: "b", wantLease: "b/" + leaseName, wantPulumi: "b"},
		"as a flag says":        {pod: "a", namespace: "b", flag: "c", wantLease: "c/" + leaseName + "-b", wantPulumi: "c"},
		"where it was, by flag": {pod: "a", namespace: "b", flag: "b", wantLease: "b/" + leaseName, wantPulumi: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", tc.pod)
			var o options
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			o.bind(flags)
			if err := errors.Join(flags.Parse([]string{"--namespace=" + tc.namespace, "--leader-elect-resource-namespace=" + tc.flag}), o.complete()); err != nil {
				t.Fatal(err)
			}
			former := ""
			if o.formerLease().Name != "" {
				former = o.formerLease().String()
			}
			if got := o.leaseNamespace + "/" + o.leaseName(); got != tc.wantLease || former != tc.wantFormer || o.keysNamespace != tc.wantPulumi {
				t.Errorf("the Lease is %q, the former %q, Pulumi's keys are in %q", got, former, o.keysNamespace)
			}
		})
	}
}

func TestOwnNamespaceIsThatOfThePod(t *testing.T) {
	o := &options{namespace: "served"}
	t.Setenv("POD_NAMESPACE", "")
	if got := o.ownNamespace(); got != "served" {
		t.Errorf("outside of a cluster it is %q, want that which is served", got)
	}
	t.Setenv("POD_NAMESPACE", "own")
	if got := o.ownNamespace(); got != "own" {
		t.Errorf("in a Pod it is %q", got)
	}
}
