// Package cli is shared by the commands of kubectl machine: kubectl's flags for a cluster,
// completion of names, output, sources of backups, exit codes.
package cli

import (
	"errors"
	"fmt"
	"os"
)

// ErrReported ends a command whose output already says what is wrong.
var ErrReported = errors.New("see the output")

// ExitCode ends a successful command with a code other than 0.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// UsersVariables are the environment variables that an engine needs to get providers as its user
// has configured it. They contain no credentials of infrastructure.
var UsersVariables = []string{
	"PATH", "HOME", configVariable, "TF_PLUGIN_CACHE_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// configVariable names the user's configuration of an engine.
const configVariable = "TF_CLI_CONFIG_FILE"

// OwnEnvironment returns the variables of UsersVariables that are set. Engines and sandboxes report
// a configuration that is missing in words that do not name the variable.
func OwnEnvironment() (map[string]string, error) {
	environment := map[string]string{}
	for _, name := range UsersVariables {
		if value, set := os.LookupEnv(name); set {
			environment[name] = value
		}
	}
	if file := environment[configVariable]; file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%s names a file that cannot be read: %w; correct the variable, or unset it",
				configVariable, err)
		}
	}
	return environment, nil
}
