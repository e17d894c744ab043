package load_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// forgery is what somebody could write into stored content, and what is said of it.
type forgery struct {
	change moduletest.Change
	want   string
}

var forgeries = map[string]forgery{
	"a provisioner":                    {moduletest.Change{"main.tf", "  name =", "  provisioner \"local-exec\" {\n    command = \"id\"\n  }\n  name ="}, "main.tf:2: provisioner"},
	"a provisioner in an override":     {moduletest.Change{"override.tf", "", "resource \"example_instance\" \"this\" {\n  provisioner \"local-exec\" {}\n}\n"}, "override.tf:2: provisioner"},
	"a provisioner in a search":        {moduletest.Change{"lookup/more.tf", "", "resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" {}\n}\n"}, "lookup/more.tf:2: provisioner"},
	"a provisioner of what is removed": {moduletest.Change{"more.tf", "", "removed {\n  from = a.b\n  provisioner \"local-exec\" {}\n}\n"}, "more.tf:3: provisioner"},
	"external data":                    {moduletest.Change{"more.tf", "", "data \"external\" \"x\" {}\n"}, "more.tf:1: data \"external\" \"x\" runs a program"},
	"external data in a search":        {moduletest.Change{"lookup/more.tf", "", "data \"external\" \"x\" {}\n"}, "lookup/more.tf:1: data \"external\" \"x\" runs a program"},
	"a provider of files":              {moduletest.Change{"terraform.tf", "    example = {", "    files = { source = \"hashicorp/local\", version = \"2.5.1\" }\n    example = {"}, "terraform.tf:4: required_providers.files reads and writes files"},
	"a provider of programs":           {moduletest.Change{"terraform.tf", "acme/example", "scottwinkler/shell"}, "required_providers.example runs programs"},
	"a backend":                        {moduletest.Change{"terraform.tf", "  required_version", "  backend \"http\" {}\n  required_version"}, "terraform.tf:2: backend \"http\""},
	"encryption by a program":          {moduletest.Change{"terraform.tf", "  required_version", "  encryption {}\n  required_version"}, "terraform.tf:2: encryption is not allowed"},
	"a program that signs in":          {moduletest.Change{"more.tf", "", "provider \"example\" {\n  exec {\n    command = \"id\"\n  }\n}\n"}, "more.tf:2: provider \"example\" exec runs a program"},
	"another module":                   {moduletest.Change{"more.tf", "", "module \"x\" {\n  source = \"./x\"\n}\n"}, "more.tf:1: module \"x\" calls another module"},
	"a block of a later engine":        {moduletest.Change{"more.tf", "", "action \"x\" \"y\" {}\n"}, "more.tf:1: action \"x\" \"y\" is not a block"},
	"JSON":                             {moduletest.Change{"main.tf.json", "", "{}"}, "main.tf.json: is HCL that only some engines read"},
	"HCL of one engine":                {moduletest.Change{"lookup/main.tofu", "", "locals {}"}, "lookup/main.tofu: is HCL that only some engines read"},
	"variables":                        {moduletest.Change{"x.auto.tfvars", "", "machine = {}"}, "x.auto.tfvars: sets variables"},
	"what is not parsed here":          {moduletest.Change{"more.tf", "", "locals {\n  a = " + strings.Repeat("[", 101) + strings.Repeat("]", 101) + "\n}\n"}, "more.tf:2: has more than 100 nested brackets"},
	"a variable of the engine":         {moduletest.Change{"module.yaml", "EXAMPLE_QUIET", "TF_CLI_CONFIG_FILE"}, "spec.environment[0].name is TF_CLI_CONFIG_FILE"},
	"a credential of the linker":       {moduletest.Change{"module.yaml", "EXAMPLE_TOKEN", "LD_PRELOAD"}, "spec.credentials.keys[0].env is LD_PRELOAD"},
}

func TestRestoreRefusesWhatRunsMoreThanProviders(t *testing.T) {
	for name, tc := range forgeries {
		t.Run(name, func(t *testing.T) {
			files := moduletest.Changed(t, tc.change)
			expectBreach(t, files, tc.want)
		})
	}
}

// expectBreach checks that neither what is loaded nor what is stored may have a breach.
func expectBreach(t *testing.T, files map[string]string, want string) {
	t.Helper()
	_, loadErr := load.Module(moduletest.FS(files))
	_, restoreErr := load.Restore(moduletest.FS(files))
	for _, err := range []error{loadErr, restoreErr} {
		var broken *contract.Error
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a breach with %q", err, want)
		}
	}
}

func using(expression string) moduletest.Change {
	return moduletest.Change{"more.tf", "", "locals {\n  a = " + expression + "\n}\n"}
}

const computed = "reads a computed path, which may be that of any file of the manager; use the literal path of a file of the module"

func TestFunctionsReadFilesOfTheModuleOnly(t *testing.T) {
	const template = "templates/user-data.tftpl"
	for name, tc := range map[string]struct {
		changes []moduletest.Change
		want    string // the breach; empty for none
	}{
		"a file of the module":           {[]moduletest.Change{using(`file("templates/user-data.tftpl")`)}, ""},
		"the same from its folder":       {[]moduletest.Change{using(`file("${path.module}/templates/user-data.tftpl")`)}, ""},
		"a template":                     {[]moduletest.Change{using(`templatefile("./templates/user-data.tftpl", { a = 1 })`)}, ""},
		"the files of a folder":          {[]moduletest.Change{using(`fileset("${path.module}/templates", "*.tftpl")`)}, ""},
		"the files of the module":        {[]moduletest.Change{using(`concat(fileset(path.module, "*.tf"), fileset("${path.module}", "*.tf"))`)}, ""},
		"the folder as a file":           {[]moduletest.Change{using(`file(path.module)`)}, `reads ".", which is not a file`},
		"whether there is one":           {[]moduletest.Change{using(`fileexists("later")`)}, ""},
		"an absolute path":               {[]moduletest.Change{using(`file("/etc/passwd")`)}, `more.tf:2: the function file reads "/etc/passwd", which is outside of the module`},
		"a step out":                     {[]moduletest.Change{using(`filebase64("templates/../../x")`)}, `reads "templates/../../x", which is outside of the module`},
		"the same from the folder":       {[]moduletest.Change{using(`filesha256("${path.module}/../x")`)}, `reads "../x", which is outside of the module`},
		"the home":                       {[]moduletest.Change{using(`file("~/.kube/config")`)}, `reads "~/.kube/config", which is outside of the module`},
		"a field":                        {[]moduletest.Change{using(`file(var.provider_spec.size)`)}, "more.tf:2: the function file " + computed},
		"a field below the folder":       {[]moduletest.Change{using(`file("${path.module}/${var.provider_spec.size}")`)}, computed},
		"a folder with more to its name": {[]moduletest.Change{using(`file("${path.module}x")`)}, computed},
		"another folder":                 {[]moduletest.Change{using(`file("${path.cwd}/x")`)}, computed},
		"a list that is spread":          {[]moduletest.Change{using(`file(["/etc/passwd"]...)`)}, "has no argument that names a file"},
		"the engine's own name":          {[]moduletest.Change{using(`core::file("/etc/passwd")`)}, "the function file reads"},
		"what try hides":                 {[]moduletest.Change{using(`try(file("/etc/passwd"), "")`)}, "the function file reads"},
		"a pattern that leads out":       {[]moduletest.Change{using(`fileset(path.module, "../*")`)}, `reads "../*", which is outside`},
		"a pattern out of a text":        {[]moduletest.Change{using(`fileset(".", "../*")`)}, `reads "../*", which is outside`},
		"a folder under another name":    {[]moduletest.Change{using(`[for path in [{ module = "/etc" }] : file("${path.module}/passwd")]`)}, "uses the name path"},
		"a file that no run has":         {[]moduletest.Change{using(`file("README.md")`)}, `reads "README.md", which is not a file of the module that a run has`},
		"a file of the run":              {[]moduletest.Change{using(`file("terraform.tfvars.json")`)}, "which is not a file of the module"},
		"a text that is a template":      {[]moduletest.Change{using(`templatestring(var.provider_spec.size, {})`)}, "evaluates a text that could read any file"},
		"a template that reads":          {[]moduletest.Change{using(`templatefile("` + template + `", {})`), {template, "", "hello\n${file(\"/etc/passwd\")}"}}, template + `:2: the function file reads "/etc/passwd"`},
		"a template with a folder given": {[]moduletest.Change{using(`templatefile("` + template + `", { path = { module = "/etc" } })`), {template, "", `${file("${path.module}/main.tf")}`}}, template + ":1: the function file " + computed},
		"a template within one":          {[]moduletest.Change{using(`templatefile("` + template + `", {})`), {template, "", `${templatefile("b", {})}${templatefile("b", {})}`}, {"b", "", "${file(a)}"}}, "b:1: the function file " + computed},
		"a template within itself":       {[]moduletest.Change{using(`templatefile("` + template + `", {})`), {template, "", `${templatefile("` + template + `", {})}`}}, ""},
		"a template that is none":        {[]moduletest.Change{using(`templatefile("` + template + `", {})`), {template, "", "${"}}, "which is not a template"},
		"a template that nests too deep": {[]moduletest.Change{using(`templatefile("` + template + `", {})`), {template, "", strings.Repeat("${\"", 200)}}, template + ":1: has more than 100 nested brackets"},
		"a resource":                     {[]moduletest.Change{{"main.tf", "  size =", "  note = file(\"/x\")\n  size ="}}, "main.tf:3: the function file"},
		"a provider":                     {[]moduletest.Change{{"more.tf", "", "provider \"example\" {\n  key = file(\"/x\")\n}\n"}}, "more.tf:2: the function file"},
		"an output":                      {[]moduletest.Change{{"outputs.tf", `value       = ""`, `value = file("/x")`}}, "outputs.tf:3: the function file"},
		"a search":                       {[]moduletest.Change{{"lookup/import.tf", "instances/", `${file("/x")}`}}, "lookup/import.tf:3: the function file"},
		"a check":                        {[]moduletest.Change{{"checks.tf", "", "check \"x\" {\n  assert {\n    condition = file(local.x) != \"\"\n    error_message = \"x\"\n  }\n}\n"}}, "checks.tf:3: the function file"},
		"a validation":                   {[]moduletest.Change{{"variables.tf", `  description = "The fields of`, "  validation {\n    condition = can(file(var.provider_spec.size))\n    error_message = \"x\"\n  }\n  description = \"The fields of"}}, "validation condition calls file"},
		"a condition of what is made":    {[]moduletest.Change{{"main.tf", "  size =", "  lifecycle {\n    precondition {\n      condition = fileexists(var.machine.name)\n      error_message = \"x\"\n    }\n  }\n  size ="}}, "main.tf:5: the function fileexists"},
	} {
		t.Run(name, func(t *testing.T) {
			files := moduletest.Changed(t, tc.changes...)
			if tc.want != "" {
				expectBreach(t, files, tc.want)
				return
			}
			for _, read := range []error{second(load.Module(moduletest.FS(files))), second(load.Restore(moduletest.FS(kept(t, tc.changes...))))} {
				if read != nil {
					t.Error(read)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestRestoreRefusesAStackThatRunsMoreThanProviders(t *testing.T) {
	declare := func(name, bridged string) moduletest.Change {
		return moduletest.Change{"sdks/more.yaml", "", "packageDeclarationVersion: 1\nname: terraform-provider\nversion: 3.128.0\nparameterization:\n  name: " + name +
			"\n  version: 1.2.3\n  value: " + base64.StdEncoding.EncodeToString([]byte(`{"remote":{"url":"registry.opentofu.org/`+bridged+`","version":"1.2.3"}}`)) + "\n"}
	}
	note := func(fields string) moduletest.Change {
		return moduletest.Change{"Pulumi.yaml", "  note:\n    type: random:RandomId\n    properties:\n", "  note:\n    type: random:RandomId\n" + fields + "    properties:\n"}
	}
	value := func(text string) moduletest.Change {
		return moduletest.Change{"Pulumi.yaml", "byteLength: 4", "byteLength: " + text}
	}
	for name, tc := range map[string]forgery{
		"a command":                     {moduletest.Change{"Pulumi.yaml", "random:RandomId", "command:local:Command"}, "runs programs"},
		"a function of commands":        {moduletest.Change{"Pulumi.yaml", "example:getImage", "command:local:run"}, "command:local:run runs programs"},
		"the same in short":             {value(`{"fn::command:local:run": {command: id}}`), "command:local:run runs programs"},
		"the same in another case":      {value(`{"fn::invoke": {Function: "command:local:run"}}`), "command:local:run runs programs"},
		"a plugin of commands":          {moduletest.Change{"sdks/more.yaml", "", "packageDeclarationVersion: 1\nname: command\nversion: 1.0.0\nparameterization: {name: acme, version: 1.0.0, value: \"\"}\n"}, "sdks/more.yaml:2: name runs programs"},
		"a provider of programs":        {declare("acme", "hashicorp/external"), "sdks/more.yaml:2: name runs programs"},
		"a provider of files":           {declare("acme", "hashicorp/local"), "sdks/more.yaml:2: name reads and writes files"},
		"an absolute path":              {value(`{"fn::readFile": /etc/passwd}`), `Pulumi.yaml:35: fn::readFile reads "/etc/passwd", which may be any file`},
		"a path out of the folder":      {value(`{"fn::fileAsset": ../x}`), `fn::fileAsset reads "../x", which may be any file`},
		"a path of the providerSpec":    {value(`{"Fn::FileBase64": "${provider_spec.size}"}`), "which may be any file"},
		"the folder of the run":         {value(`{"fn::fileArchive": .}`), `fn::fileArchive reads ".", which is not a file of the stack`},
		"a file of the run":             {value(`{"fn::readFile": Pulumi.machine.yaml}`), "which is not a file of the stack that a run has"},
		"fields of another object":      {value(`{"<<": {"fn::readFile": templates/user-data.txt}}`), "<< merges objects"},
		"another stack":                 {moduletest.Change{"Pulumi.yaml", "random:RandomId", "pulumi:pulumi:StackReference"}, "reads another stack"},
		"a plugin from elsewhere":       {note("    options:\n      pluginDownloadURL: https://example.com\n"), "would download a plugin"},
		"an option in another case":     {note("    Options:\n      provider: x\n"), "resources.note.Options is unknown"},
		"plugins by their paths":        {moduletest.Change{"Pulumi.yaml", "runtime: yaml", "runtime: yaml\nplugins: {providers: [{name: random, path: /tmp}]}"}, "plugins names plugins by paths"},
		"a program that writes one":     {moduletest.Change{"Pulumi.yaml", "runtime: yaml", "runtime: {name: yaml, options: {compiler: sh}}"}, "runtime has options"},
		"a backend":                     {moduletest.Change{"Pulumi.yaml", "runtime: yaml", "runtime: yaml\nbackend: {url: s3://x}"}, "backend sets where the checkpoint is stored"},
		"another program":               {moduletest.Change{"Main.yaml", "", "resources: {}\n"}, "Main.yaml: would run instead of"},
		"settings":                      {moduletest.Change{"Pulumi.machine.yaml", "", "config: {}\n"}, "Pulumi.machine.yaml: contains stack settings"},
		"a lookup that runs a command":  {moduletest.Change{"lookup/Pulumi.yaml", "example:index:Instance", "command:local:Command"}, "lookup/Pulumi.yaml:9: resources.this runs programs"},
		"a program that cannot be read": {moduletest.Change{"Pulumi.yaml", "runtime: yaml", "runtime: yaml\nruntime: go"}, "Pulumi.yaml:4: is not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) { expectBreach(t, moduletest.ChangedStack(t, tc.change), tc.want) })
	}
}

func TestAStackMayReadItsFiles(t *testing.T) {
	change := moduletest.Change{"Pulumi.yaml", "byteLength: 4", `byteLength: {"fn::readFile": ./templates/user-data.txt}` + "\n      more: {\"fn::fileArchive\": templates}"}
	if _, err := load.Module(moduletest.FS(moduletest.ChangedStack(t, change))); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatIsCodeIsNotRestoredUnlessItIsProven(t *testing.T) {
	code := moduletest.ChangedStack(t, moduletest.Change{"Pulumi.yaml", "runtime: yaml", "runtime: {name: go, options: {binary: program}}"},
		moduletest.Change{"Pulumi.yaml", "variables:\n  image:\n    fn::invoke:\n      function: example:getImage\n      arguments: {name: \"${provider_spec.size}\"}\n      return: id\n", ""})
	code["Pulumi.yaml"], _, _ = strings.Cut(code["Pulumi.yaml"], "resources:")
	if _, err := load.Module(moduletest.FS(code)); err != nil {
		t.Errorf("what an administrator gives: %v", err)
	}
	if _, err := load.RestoreProven(moduletest.FS(code)); err != nil {
		t.Errorf("what is proven: %v", err)
	}
	if _, err := load.Restore(moduletest.FS(code)); err == nil || !strings.Contains(err.Error(), `Pulumi.yaml:3: runtime is "go", so the program is code`) {
		t.Errorf("what is not: %v", err)
	}
}
