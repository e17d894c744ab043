package tofu

import (
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// Plugin is a provider plugin that runs by itself, for clients of its protocol. It is not configured.
type Plugin struct{ process *provider.Process }

// StartPlugin starts the plugin, whose path is absolute, with nothing but the environment. dir is made for it and goes with it; its path
// must be free of links, and short enough for that of a socket in it. A sandbox that is not nil confines it.
func StartPlugin(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*Plugin, error) {
	started, err := provider.Start(dir, file, environment, confined)
	if err != nil {
		return nil, err
	}
	return &Plugin{process: started}, nil
}

// Address returns where it listens, as net.Dial takes it.
func (p *Plugin) Address() (network, address string) {
	at := p.process.Reattach().Addr
	return at.Network, at.String
}

// ProtocolVersion returns 5 or 6.
func (p *Plugin) ProtocolVersion() int { return p.process.Reattach().ProtocolVersion }

// End kills it and removes its folder.
func (p *Plugin) End() error { return p.process.End() }

// ReadStream reads what an engine wrote with -json, for callers that run one without an [Engine]. The strings in sensitive show in
// nothing of the replies.
func ReadStream(written []byte, sensitive []string) *engine.Report {
	read := newStream(redact.New(sensitive), nil)
	_, _ = read.Write(written) // it never fails
	return read.finish()
}
