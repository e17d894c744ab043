package tofu

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// reserved are the names that an engine's environment gets from this package alone, and the prefixes of those that would change what is
// run rather than with which credentials.
var reserved = workdir.Reserved{Names: []string{"HOME", "TMPDIR", "CHECKPOINT_DISABLE", sandbox.Variable}, Prefixes: []string{"TF_", "LD_"}}

// Backend says where the state is: Terraform's http backend.
type Backend struct {
	Address string
	// LockAddress and UnlockAddress are empty where the engine need not lock.
	LockAddress   string
	UnlockAddress string
	Username      string
	Password      string
}

func (b Backend) environment() map[string]string {
	environment := map[string]string{}
	for name, value := range map[string]string{
		"TF_HTTP_ADDRESS":        b.Address,
		"TF_HTTP_LOCK_ADDRESS":   b.LockAddress,
		"TF_HTTP_UNLOCK_ADDRESS": b.UnlockAddress,
		"TF_HTTP_USERNAME":       b.Username,
		"TF_HTTP_PASSWORD":       b.Password,
	} {
		if value != "" {
			environment[name] = value
		}
	}
	return environment
}

// defaultEnvironment is what the administrator may set otherwise. Many short processes run at once, so that one thread for each
// is enough: a create and destroy then takes an eighth less CPU time, and no longer.
var defaultEnvironment = map[string]string{"GOMAXPROCS": "1"}

// shortLived has an engine collect garbage more rarely: it ends before that pays. It is for engines alone, since providers would inherit it,
// and those that are kept live long. A create takes a fifth less of the engine's CPU time with it.
var shortLived = map[string]string{"GOGC": "300"}

// environmentBeside returns the environment of an engine beside providers that run already.
func (f *Workspace) environmentBeside(running tfexec.ReattachInfo) map[string]string {
	if f.lease == nil || len(running) < f.plugins {
		return f.environment
	}
	environment := maps.Clone(shortLived)
	maps.Copy(environment, f.environment)
	return environment
}

// providerEnvironment is what the providers of a run need to see: what the administrator set, and the run's own.
func (e *Engine) providerEnvironment(own map[string]string) map[string]string {
	environment := maps.Clone(defaultEnvironment)
	maps.Copy(environment, e.options.Environment)
	maps.Copy(environment, own)
	return environment
}

// environment is everything that an engine in dir gets to see, but for what terraform-exec adds: switches of the CLI, and the
// parent's TF_APPEND_USER_AGENT. The engine puts sockets into its temporary folder, so that is the slot, whose path is short.
func (e *Engine) environment(dir string, s *slot, own map[string]string, backend Backend) map[string]string {
	environment := e.providerEnvironment(own)
	maps.Copy(environment, backend.environment())
	maps.Copy(environment, map[string]string{
		"HOME":               dir,
		"TMPDIR":             s.link,
		"CHECKPOINT_DISABLE": "1",
		"TF_CLI_CONFIG_FILE": e.dir.cliConfig(),
	})
	return environment
}

// confined adds to the environment of an engine what confines it: it writes into dir alone, and reads the module.
func (e *Engine) confined(environment map[string]string, dir, module string) map[string]string {
	maps.Copy(environment, e.options.Sandbox.Environment(sandbox.Policy{
		Program: e.options.Binary.Path, Read: append([]string{module}, e.readable...), Write: []string{dir},
	}))
	return environment
}

// cliConfig is the CLI's configuration: providers come from the mirror, and from nowhere else unless direct is set.
func cliConfig(mirror string, direct bool) []byte {
	var out strings.Builder
	out.WriteString("disable_checkpoint = true\n")
	out.WriteString("provider_installation {\n")
	out.WriteString("  filesystem_mirror {\n")
	fmt.Fprintf(&out, "    path = %s\n", strconv.Quote(mirror))
	out.WriteString("  }\n")
	if direct {
		out.WriteString("  direct {\n  }\n")
	}
	out.WriteString("}\n")
	return []byte(out.String())
}
