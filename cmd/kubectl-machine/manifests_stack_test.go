package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// stackPlatforms are the folders of manifests, by the stack that makes the same as the module that they are written for.
var stackPlatforms = []string{"aws", "openstack"}

// TestManifestsOfStacks plans each manifest with the stack in place of the module, and compares the two plans. What differs is in the file
// beside it; TestEveryDifferenceOfAStackIsInItsREADME of the stacks reads these files.
func TestManifestsOfStacks(t *testing.T) {
	long.Test(t)
	t.Parallel()
	for _, name := range stackPlatforms {
		folder := repository(t, "test", "manifests", name)
		cases, err := filepath.Glob(filepath.Join(folder, "*.plan"))
		if err != nil || len(cases) < 2 {
			t.Fatalf("want plans of the module, got %v, %v", cases, err)
		}
		for _, planned := range cases {
			file := strings.TrimSuffix(planned, ".plan")
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				ofModule, err := os.ReadFile(planned)
				if err != nil {
					t.Fatal(err)
				}
				golden.Check(t, file+".stack", differenceOf(string(ofModule), planOfStack(t, name, file+".yaml")))
			})
		}
	}
}

// planOfStack returns what `kubectl machine plan` prints for a manifest whose providerSpec is one of the stack.
func planOfStack(t *testing.T, stack, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rewritten := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(rewritten, []byte(asStack(t, stack, string(content))), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"plan", "-f", rewritten, "--pulumi", repository(t, "bin", "pulumi"), "--pulumi-plugins", repository(t, "bin", "pulumi-plugins"),
		"--provider-mirror", repository(t, "bin", "schemas"),
	}
	if !strings.Contains(string(content), "\nkind: Infrastructure\n") {
		args = append(args, "--infrastructure", filepath.Join(filepath.Dir(file), manifestInfrastructure))
	}
	planned := runCommand(t, args...)
	return strings.ReplaceAll(planned.out+planned.err, rewritten, filepath.Base(file))
}

// asStack returns a manifest with its providerSpecs as those of a stack.
func asStack(t *testing.T, stack, content string) string {
	t.Helper()
	var documents []string
	for _, document := range strings.Split(content, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		spec, _ := object["spec"].(map[string]any)
		if template, is := spec["template"].(map[string]any); is {
			spec, _ = template["spec"].(map[string]any)
		}
		if provider, is := spec["providerSpec"].(map[string]any); is {
			provider["value"] = specOfStack(stack, provider["value"].(map[string]any))
		}
		written, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(written))
	}
	return strings.Join(documents, "---\n")
}

// specOfStack returns a providerSpec of OpenShift as one of a stack. Names of Secrets are among its values.
func specOfStack(stack string, spec map[string]any) map[string]any {
	values := maps.Clone(spec)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(values, name)
	}
	return map[string]any{"apiVersion": "machine-iac.io/v1alpha1", "kind": "PulumiMachineProviderSpec", "stack": stack, "values": values}
}

// onlyOfModules are kinds of resources that only modules make, to remember something or to manage what an instance was made with.
var onlyOfModules = []string{"terraform_data", "aws_ec2_tag"}

// everywhere are differences of all plans of a stack, which its README explains: no row is for one manifest.
var everywhere = []string{
	// Nothing remembers the user data of an instance that a stack made, so the provider compares it.
	"aws_instance: only the stack has user_data_replace_on_change = true",
}

// valuesByKind are the values of a plan's resources, by their kinds in the spelling of Terraform. What is unknown is known to be there.
type valuesByKind struct {
	count   map[string]int
	known   map[string][]string
	unknown map[string][]string
}

var (
	plannedResource = regexp.MustCompile(`^  \+ (\S+)$`)
	plannedValue    = regexp.MustCompile(`^      \+ (.+?) += (.*)$`)
	// typeOfBridge is a type of a bridged provider: package:index/resourceName:ResourceName.
	typeOfBridge = regexp.MustCompile(`^([a-z]+):index/([A-Za-z0-9]+):`)
	upperCase    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	upperCases   = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// valuesOf reads a plan as it is printed.
func valuesOf(plan string) valuesByKind {
	read := valuesByKind{count: map[string]int{}, known: map[string][]string{}, unknown: map[string][]string{}}
	kind := ""
	for line := range strings.Lines(plan) {
		line = strings.TrimSuffix(line, "\n")
		if match := plannedResource.FindStringSubmatch(line); match != nil {
			if kind = kindOf(match[1]); !slices.Contains(onlyOfModules, kind) {
				read.count[kind]++
			}
			continue
		}
		match := plannedValue.FindStringSubmatch(line)
		if match == nil || read.count[kind] == 0 {
			continue
		}
		switch path := spelling(match[1]); match[2] {
		case "(known after apply)", "(sensitive)":
			read.unknown[kind] = append(read.unknown[kind], path)
		default:
			read.known[kind] = append(read.known[kind], path+" = "+match[2])
		}
	}
	return read
}

// kindOf returns the kind of a resource's address.
func kindOf(address string) string {
	if match := typeOfBridge.FindStringSubmatch(address); match != nil {
		return match[1] + "_" + spelling(match[2])
	}
	kind, _, _ := strings.Cut(address, ".")
	return kind
}

// spelling returns a path in one spelling for both engines: a bridge names lists in the plural, has objects in place of lists of one, and
// writes names in camel case.
func spelling(path string) string {
	path = strings.ReplaceAll(path, "[0]", "")
	steps := strings.Split(upperCases.ReplaceAllString(upperCase.ReplaceAllString(path, "${1}_${2}"), "${1}_${2}"), ".")
	for i, step := range steps {
		name, index, _ := strings.Cut(step, "[")
		steps[i] = strings.TrimSuffix(strings.ToLower(name), "s")
		if index != "" {
			steps[i] += "[" + index
		}
	}
	return strings.Join(steps, ".")
}

// differenceOf returns how the plan of a stack differs from that of the module for the same manifest.
func differenceOf(ofModule, ofStack string) string {
	if refusal := refusalIn(ofStack); refusal != "" && refusalIn(ofModule) == "" {
		return "The stack refuses it:\n" + refusal
	}
	module, stack := valuesOf(ofModule), valuesOf(ofStack)
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(module.count)) {
		if module.count[kind] != stack.count[kind] {
			lines = append(lines, fmt.Sprintf("%s: the module makes %d, the stack %d", kind, module.count[kind], stack.count[kind]))
			continue
		}
		lines = append(lines, lacking("module", kind, module, stack)...)
		lines = append(lines, lacking("stack", kind, stack, module)...)
	}
	for _, kind := range slices.Sorted(maps.Keys(stack.count)) {
		if module.count[kind] == 0 {
			lines = append(lines, fmt.Sprintf("%s: the module makes 0, the stack %d", kind, stack.count[kind]))
		}
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(everywhere, line) })
	if len(lines) == 0 {
		return "The stack makes the same.\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// lacking returns the values of a kind that one engine has and the other does not, unless it does not know them yet.
func lacking(who, kind string, of, other valuesByKind) []string {
	var lines []string
	left := slices.Clone(other.known[kind])
	for _, value := range slices.Sorted(slices.Values(of.known[kind])) {
		if at := slices.Index(left, value); at >= 0 {
			left = slices.Delete(left, at, at+1)
			continue
		}
		path, _, _ := strings.Cut(value, " = ")
		if !slices.ContainsFunc(other.unknown[kind], func(unknown string) bool { return covers(unknown, path) || covers(path, unknown) }) {
			lines = append(lines, kind+": only the "+who+" has "+value)
		}
	}
	return lines
}

// covers reports whether a path is that of a value, or of what it is in.
func covers(path, value string) bool {
	rest, starts := strings.CutPrefix(value, path)
	return starts && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// refusalIn returns the errors of a plan that was not made.
func refusalIn(plan string) string {
	_, refusal, _ := strings.Cut(plan, "error: ")
	return refusal
}

func TestDifferenceOfPlans(t *testing.T) {
	t.Parallel()
	const module = "  + acme_port_v2.a[\"0\"]\n      + fixed_ip[0].subnet_id = \"s\"\n      + name = \"n\"\n      + tags = (known after apply)\n  + terraform_data.made_with\n      + id = (known after apply)\n"
	cases := map[string]struct{ stack, want string }{
		"none": {
			"  + acme:index/portV2:PortV2.port0\n      + fixedIps[0].subnetId = \"s\"\n      + name = \"n\"\n      + tags[0] = \"known\"\n", "The stack makes the same.\n",
		},
		"another value, and one more": {
			"  + acme:index/portV2:PortV2.port0\n      + fixedIps[0].subnetId = \"t\"\n      + more = true\n      + name = \"n\"\n",
			"acme_port_v2: only the module has fixed_ip.subnet_id = \"s\"\nacme_port_v2: only the stack has fixed_ip.subnet_id = \"t\"\nacme_port_v2: only the stack has more = true\n",
		},
		"other resources": {"  + acme:index/trunk:Trunk.t\n      + name = \"n\"\n", "acme_port_v2: the module makes 1, the stack 0\nacme_trunk: the module makes 0, the stack 1\n"},
		"a refusal":       {"error: no\n", "The stack refuses it:\nno\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := differenceOf(module, tc.stack); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
