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

// reserved are the environment variables that only this package sets, and the prefixes of variables
// that change what is run rather than with which credentials.
var reserved = workdir.Reserved{Names: []string{"HOME", "TMPDIR", "CHECKPOINT_DISABLE", sandbox.Variable},
	Prefixes: []string{"TF_", "LD_"}}

// Backend is the address of the state: Terraform's http backend.
type Backend struct {
	Address string
	// LockAddress and UnlockAddress are empty if the engine need not lock.
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

// defaultEnvironment can be overridden by the administrator. Many short processes run concurrently,
// so one thread each is enough: a create and destroy uses an eighth less CPU time and takes no
// longer.
var defaultEnvironment = map[string]string{"GOMAXPROCS": "1"}

// shortLived reduces garbage collection in engines, which exit before it pays off. It saves a fifth
// of an engine's CPU time in a create. Warm providers must not inherit it, since they live long.
var shortLived = map[string]string{"GOGC": "300"}

// environmentBeside returns the environment of an engine that uses running providers.
func (f *Workspace) environmentBeside(running tfexec.ReattachInfo) map[string]string {
	if f.lease == nil || len(running) < f.plugins {
		return f.environment
	}
	environment := maps.Clone(shortLived)
	maps.Copy(environment, f.environment)
	return environment
}

// providerEnvironment returns the environment that the run's providers need: the administrator's
// and the run's own.
func (e *Engine) providerEnvironment(own map[string]string) map[string]string {
	environment := maps.Clone(defaultEnvironment)
	maps.Copy(environment, e.options.Environment)
	maps.Copy(environment, own)
	return environment
}

// environment returns the full environment of an engine in dir, except what terraform-exec adds:
// switches of the CLI, and the parent's TF_APPEND_USER_AGENT. The temporary folder is the slot: the
// engine creates sockets there, which need a short path.
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

// confined adds the sandbox to the environment of an engine: it may write to dir only, and read the
// module.
func (e *Engine) confined(environment map[string]string, dir, module string) map[string]string {
	maps.Copy(environment, e.options.Sandbox.Environment(sandbox.Policy{
		Program: e.options.Binary.Path, Read: append([]string{module}, e.readable...), Write: []string{dir},
	}))
	return environment
}

// cliConfig returns the CLI's configuration. Providers come from the mirror only, unless direct is
// set.
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
