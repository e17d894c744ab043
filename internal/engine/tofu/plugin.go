package tofu

import (
	"context"
	"net"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// Plugin is a provider plugin that runs on its own, for clients of its protocol. It is not
// configured.
type Plugin struct{ process *provider.Process }

// StartPlugin starts the plugin at an absolute path with exactly this environment. It creates dir,
// which End removes. The path of dir must contain no links and be short enough for the path of a
// socket. sandbox may be nil.
func StartPlugin(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*Plugin, error) {
	started, err := provider.Start(dir, file, environment, confined)
	if err != nil {
		return nil, err
	}
	return &Plugin{process: started}, nil
}

// Dial connects to the plugin. It accepts no other connections.
func (p *Plugin) Dial(ctx context.Context) (net.Conn, error) { return p.process.Dial(ctx) }

// ProtocolVersion returns 5 or 6.
func (p *Plugin) ProtocolVersion() int { return p.process.Reattach().ProtocolVersion }

// End kills it and removes its folder.
func (p *Plugin) End() error { return p.process.End() }

// ReadStream parses the -json output of an engine that was run without an [Engine]. It redacts the
// sensitive strings.
func ReadStream(written []byte, sensitive []string) *engine.Report {
	read := newStream(redact.New(sensitive), nil)
	_, _ = read.Write(written) // never fails
	return read.finish()
}
